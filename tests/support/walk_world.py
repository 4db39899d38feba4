"""A seeded random walk without any import of the official package: quick to start again."""

import random
from typing import Any

from pydantic import Field

from corral.serve import Action, Environment, Observation, State


def walk_on(
    environment: type, action: type, observation: type, state: type
) -> tuple[type, type, type]:
    """The action, the observation and the world, on the base classes of one of the packages."""

    class WalkAction(action):
        """Where to go."""

        direction: int = Field(ge=-1, le=1)

    class WalkObservation(observation):
        """Where one is, and what one sees there."""

        place: int
        sight: int

    class WalkWorld(environment):
        """Equal seeds and actions give equal observations, and nothing outside is touched."""

        SUPPORTS_CONCURRENT_SESSIONS = True
        REPLAYABLE = True

        def __init__(self) -> None:
            super().__init__()
            self._random = random.Random(0)
            self._place = self._step = 0
            self._episode_id: str | None = None

        def reset(
            self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
        ) -> WalkObservation:
            """Start at 0 with a new stream of chance."""
            self._random, self._place, self._step = random.Random(seed), 0, 0
            self._episode_id = episode_id
            return self._see()

        def step(
            self, action: WalkAction, timeout_s: float | None = None, **kwargs: Any
        ) -> WalkObservation:
            """Go there, and be blown about."""
            self._step += 1
            self._place += action.direction + self._random.randint(-2, 2)
            return self._see()

        def _see(self) -> WalkObservation:
            return WalkObservation(
                place=self._place, sight=self._random.getrandbits(31), reward=float(self._place)
            )

        @property
        def state(self) -> Any:
            """Episode and steps."""
            return state(episode_id=self._episode_id, step_count=self._step)

    return WalkAction, WalkObservation, WalkWorld


WalkAction, WalkObservation, WalkWorld = walk_on(Environment, Action, Observation, State)


class UnrepeatableWalkWorld(WalkWorld):
    """The same, but it does not say that it may be played again."""

    REPLAYABLE = False


def direction_of(step: int) -> int:
    """What a player does at a step, always the same."""
    return (step * 7 + step // 3) % 3 - 1


def undisturbed_walk(seed: int, steps: int) -> list[tuple[int, int]]:
    """What is seen in an episode that nothing disturbs: place and sight, from the reset on."""
    world = WalkWorld()
    seen = [world.reset(seed=seed)]
    seen += [world.step(WalkAction(direction=direction_of(step))) for step in range(steps)]
    return [(found.place, found.sight) for found in seen]
