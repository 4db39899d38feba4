"""Worlds served by the official package: ``python -m support.client_worlds counter PORT``."""

import os
import sys
import time
from typing import Any, Literal

import uvicorn
from fastmcp import FastMCP
from openenv.core.env_server import (
    Action,
    CallToolAction,
    Environment,
    MCPEnvironment,
    Observation,
    State,
    create_fastapi_app,
)
from openenv.core.env_server.mcp_types import CallToolObservation
from pydantic import Field


class CountAction(Action):
    """Say something to the counter."""

    text: str = Field(min_length=1, description="What to say.")
    sleep_s: float = 0.0
    fails: bool = False
    size: int = 0


class CountObservation(Observation):
    text: str
    count: int
    filler: str = ""


class Counter(Environment):
    """Counts its steps."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._state = State(episode_id=None, step_count=0)

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, start: int = 0, **kwargs: Any
    ) -> CountObservation:
        self._state = State(episode_id=episode_id, step_count=0)
        self.count = start
        return CountObservation(
            text=f"ready {sorted(kwargs)}", count=self.count, metadata={"seed": seed}
        )

    def step(self, action: CountAction, timeout_s: float | None = None, **_: Any) -> Observation:
        time.sleep(action.sleep_s)
        if action.fails:
            raise ValueError("told to fail")
        self.count += 1
        self._state.step_count += 1
        return CountObservation(
            text=action.text,
            count=self.count,
            filler="x" * action.size,
            reward=0.25,
            done=self.count >= 1000,
        )

    @property
    def state(self) -> State:
        return self._state


class MoveAction(Action):
    """Move on the board."""

    direction: Literal["left", "stay", "right"]
    far: bool = Field(default=False, description="Whether to move two squares.")


class MoveObservation(Observation):
    place: int


class Board(Environment):
    """Three moves along a line."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed: Any = None, episode_id: Any = None, **_: Any) -> MoveObservation:
        self.place, self.moves = 0, 0
        return MoveObservation(place=0)

    def step(self, action: MoveAction, timeout_s: Any = None, **_: Any) -> MoveObservation:
        way = {"left": -1, "stay": 0, "right": 1}[action.direction]
        self.place += way * (2 if action.far else 1)
        self.moves += 1
        return MoveObservation(place=self.place, reward=float(way), done=self.moves == 3)

    @property
    def state(self) -> State:
        return State(step_count=self.moves)


class Toolbox(MCPEnvironment):
    """A bag that things are put into, with MCP tools."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        server = FastMCP("toolbox")
        self.bag: list[str] = []

        @server.tool
        def put(thing: str, times: int = 1) -> str:
            """Put a thing into the bag.

            Args:
                thing: What to put in.
                times: How many of it.
            """
            self.bag += [thing] * times
            return f"{len(self.bag)} things"

        @server.tool
        def nameless() -> int:
            return len(self.bag)

        @server.tool
        def explode() -> str:
            """Explode."""
            raise ValueError("it exploded")

        super().__init__(server)

    def reset(self, seed: Any = None, episode_id: Any = None, **_: Any) -> Observation:
        self.bag.clear()
        return Observation(reward=0.0, metadata={"status": "ready"})

    def _step_impl(self, action: Action, timeout_s: Any = None, **_: Any) -> Observation:
        raise ValueError("only tools")

    @property
    def state(self) -> State:
        return State(step_count=len(self.bag))


WORLDS = {
    "counter": (Counter, CountAction, CountObservation),
    "board": (Board, MoveAction, MoveObservation),
    "toolbox": (Toolbox, CallToolAction, CallToolObservation),
}


def main() -> None:
    world, port = sys.argv[1:3]
    env, action, observation = WORLDS[world]
    capacity = int(os.environ.get("MAX_CONCURRENT_ENVS", "8"))
    app = create_fastapi_app(env, action, observation, max_concurrent_envs=capacity)
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main()
