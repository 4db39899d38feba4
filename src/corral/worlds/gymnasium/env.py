"""An environment of Gymnasium as an environment class: its actions are one tool."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

from corral.env.signatures import ToolSpec, method_of
from corral.errors import InfrastructureFault
from corral.worlds.gymnasium.actions import Actions, actions_of
from corral.worlds.gymnasium.loading import make, manual
from corral.worlds.gymnasium.show import shown

Show = Callable[[Any, Any], str]
"""From environment and observation to what the model reads."""


class Gymnasium:
    """A factory of environments of one id.

    ::

        factory = Gymnasium("FrozenLake-v1", is_slippery=False)
        lake = factory()
        print(lake.reset(seed=7))
        print(lake.act(1))
        lake.get_reward()            # the sum of its rewards so far
    """

    def __init__(self, gym_id: str, *, show: Show = shown, **options: Any) -> None:
        """
        Args:
            gym_id: As Gymnasium knows it, or ``module:ID`` of one that a module registers.
            show: In place of the usual text of observations.
            options: Passed to ``gymnasium.make``.
        """
        self._gym_id, self._show, self._options = gym_id, show, options

    def __call__(self) -> "GymnasiumEnvironment":
        """Make an environment.

        Raises:
            UsageError: There is none, or its actions are none that a tool can take.
        """
        return self._class()

    @cached_property
    def _class(self) -> "type[GymnasiumEnvironment]":
        env = make(self._gym_id, self._options)
        actions = actions_of(env, self._gym_id)
        spec = ToolSpec(
            name="act",
            description="Take an action.",
            parameters=actions.parameters,
            returns={"type": "string"},
        )
        members = {
            "__doc__": f"Gymnasium's {self._gym_id}.",
            "_gym_id": self._gym_id,
            "_options": self._options,
            "_actions": actions,
            "_show": staticmethod(self._show),
            "_manual": manual(env),
            "act": method_of(spec, GymnasiumEnvironment._act),
        }
        env.close()
        return type("GymnasiumEnvironment", (GymnasiumEnvironment,), members)


class GymnasiumEnvironment:
    """One environment; subclasses have its tool ``act``."""

    _gym_id: ClassVar[str]
    _options: ClassVar[dict[str, Any]]
    _actions: ClassVar[Actions]
    _show: ClassVar[Show]
    _manual: ClassVar[str]

    def __init__(self) -> None:
        self._env = make(self._gym_id, self._options)
        self._begin()
        self.done = True  # until a first reset there is nothing to act on

    def reset(self, seed: int = 0, **row: Any) -> str:
        """Start an episode.

        Args:
            seed: Of the episode; the same one gives the same.
            row: Other columns of the row; not used.
        """
        self._begin()
        observation, _ = self._env.reset(seed=seed)
        text = type(self)._show(self._env, observation)
        return f"{self._manual}\n\n{text}" if self._manual else text

    def get_reward(self) -> float:
        """The sum of all rewards."""
        return self.total

    def close(self) -> None:
        """Free what the environment holds."""
        self._env.close()

    def _begin(self) -> None:
        self.done = False
        self.won = False
        self.total = 0.0
        self.steps = 0
        self.illegal_actions = 0
        self._largest = 0.0
        """The largest single reward so far."""
        self._measure()

    def _act(self, arguments: dict[str, Any]) -> str:
        if self.done:
            raise ValueError("The episode is over.")
        try:
            action = self._actions.read(arguments)
        except ValueError:
            self.illegal_actions += 1
            self._measure()
            raise
        try:
            observation, reward, terminated, truncated, _ = self._env.step(action)
            gained, is_end, is_cut = float(reward), bool(terminated), bool(truncated)
        except Exception as error:  # a simulator's own; a legal action is not the model's mistake
            raise InfrastructureFault(
                f"{self._gym_id}: step({action!r}) failed with {type(error).__name__}: {error}"
            ) from error
        self.steps += 1
        self.total += gained
        self.done = is_end or is_cut
        self.won = self.done and self._is_won(gained, is_end=is_end)
        self._largest = max(self._largest, gained)
        self._measure()
        text = f"{type(self)._show(self._env, observation)}\nReward: {gained:g}."
        if not self.done:
            return text
        why = "over" if is_end else "broken off after its longest time"
        return f"{text} The episode is {why}. All rewards: {self.total:g}."

    def _is_won(self, last: float, *, is_end: bool) -> bool:
        """Whether it reached the score that counts as solved, or ended with its largest reward."""
        threshold = self._env.spec.reward_threshold
        if threshold is not None and self.total >= threshold:
            return True
        return is_end and last > self._largest

    def _measure(self) -> None:
        self.metrics: dict[str, float] = {
            "win": float(self.won),
            "steps": float(self.steps),
            "illegal_actions": float(self.illegal_actions),
        }
