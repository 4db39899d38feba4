"""Worlds written for the official package, with actions that show what a check looks for.

The same classes are served by the official server and by Corral's.
"""

import threading
import time
from typing import Any

from fastmcp import FastMCP
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field

from support.walk_world import walk_on

_counting = threading.Lock()


class ProbeAction(Action):
    """A message; some words make the world do something odd."""

    message: str = Field(min_length=1)


class ProbeObservation(Observation):
    """The message again."""

    echoed: str
    step: int


class ProbeState(State):
    """What the environment counts, of itself and of all its kind."""

    total: int = 0
    environments_made: int = 0
    environments_closed: int = 0


class ProbeWorld(Environment):
    """Echoes; raises at "boom", takes its time at "slow 1.5", is verbose at "large"."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    made = 0
    closed = 0
    is_breaking = False

    def __init__(self) -> None:
        super().__init__()
        if ProbeWorld.is_breaking:
            ProbeWorld.is_breaking = False
            raise RuntimeError("the constructor fails, once")
        with _counting:
            ProbeWorld.made += 1
        self._episode_id: str | None = None
        self._step = self._total = 0

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> ProbeObservation:
        """Start again."""
        self._episode_id, self._step, self._total = episode_id, 0, 0
        return ProbeObservation(echoed="ready", step=0, metadata={"seed": seed, **kwargs})

    def step(
        self, action: ProbeAction, timeout_s: float | None = None, **kwargs: Any
    ) -> ProbeObservation:
        """Echo, or what the message says."""
        match action.message.split():
            case ["boom"]:
                raise RuntimeError("boom: token=hunter2")
            case ["slow", seconds]:
                time.sleep(float(seconds))
            case ["break"]:
                ProbeWorld.is_breaking = True
            case ["large"]:
                self._step += 1
                return ProbeObservation(echoed="x" * 20_000_000, step=self._step)
        self._step += 1
        self._total += len(action.message)
        return ProbeObservation(
            echoed=action.message[:100], step=self._step, reward=len(action.message) / 10
        )

    @property
    def state(self) -> ProbeState:
        """Everything that is counted."""
        return ProbeState(
            episode_id=self._episode_id,
            step_count=self._step,
            total=self._total,
            environments_made=ProbeWorld.made,
            environments_closed=ProbeWorld.closed,
        )

    def close(self) -> None:
        """Count."""
        with _counting:
            ProbeWorld.closed += 1

    def list_splits(self) -> list[str]:
        """Two splits."""
        return ["train", "test"]

    def num_tasks(self, split: str) -> int:
        """Three tasks in each."""
        return 3

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """A task."""
        return [{"n": n, "split": split} for n in range(3)][index]


class ToolWorld(MCPEnvironment):
    """Tools that add, remember and fail."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        tools = FastMCP("tool-world")
        self._notes: list[str] = []
        self._episode_id: str | None = None
        self._step = 0

        @tools.tool
        def add(a: int, b: int = 2) -> int:
            """Add two numbers."""
            return a + b

        @tools.tool
        def remember(text: str) -> int:
            """Keep a note, and say how many there are."""
            self._notes.append(text)
            return len(self._notes)

        @tools.tool
        def boom() -> str:
            """Fail."""
            raise ValueError("tool boom secret")

        super().__init__(tools)

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> Observation:
        """Forget the notes."""
        self._notes.clear()
        self._episode_id, self._step = episode_id, 0
        return Observation(metadata={"status": "ready"})

    def step(self, action: Action, timeout_s: float | None = None, **kwargs: Any) -> Observation:
        """Count, and do what the base class does."""
        self._step += 1
        return super().step(action, timeout_s=timeout_s, **kwargs)

    async def step_async(
        self, action: Action, timeout_s: float | None = None, **kwargs: Any
    ) -> Observation:
        """Count, and do what the base class does."""
        self._step += 1
        return await super().step_async(action, timeout_s=timeout_s, **kwargs)

    def _step_impl(
        self, action: Action, timeout_s: float | None = None, **kwargs: Any
    ) -> Observation:
        return Observation(metadata={"error": f"{type(action).__name__} is no tool call"})

    @property
    def state(self) -> State:
        """Episode and steps."""
        return State(episode_id=self._episode_id, step_count=self._step)


WalkAction, WalkObservation, WalkWorld = walk_on(Environment, Action, Observation, State)
