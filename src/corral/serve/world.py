"""What a server needs from an environment, whichever kind it is.

Two kinds are served: classes whose methods are tools (``corral.env``), and OpenEnv-style classes
with ``reset``, ``step`` and ``state`` over typed actions and observations. Sessions, routes and
frames see both as a `World`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What ``reset`` or ``step`` answered, as it goes over the wire."""

    observation: Any
    """A JSON object: the environment's own fields and ``metadata``; no ``reward``, no ``done``."""
    reward: bool | int | float | None
    done: bool
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDescription:
    """One tool as MCP lists it."""

    name: str
    description: str
    input_schema: dict[str, Any]
    meta: dict[str, Any] | None = None
    """For Corral peers: ``{"corral": {"return": schema}}``, what a model is told of the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """What a tool call answered."""

    content: list[dict[str, Any]]
    """MCP content blocks."""
    data: Any
    """The returned value, as JSON."""
    is_error: bool = False


class World(Protocol):
    """The environment of one session. A session makes one call at a time."""

    async def reset(self, arguments: Mapping[str, Any]) -> Observed:
        """Start an episode."""
        ...

    async def step(self, action: Any, *, timeout_s: float | None = None) -> Observed:
        """Do one action, validated here."""
        ...

    async def state(self) -> dict[str, Any]:
        """The state as a JSON object: ``episode_id``, ``step_count`` and what the world shows."""
        ...

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Call a tool outside ``step``."""
        ...

    async def close(self) -> None:
        """Free everything. Called exactly once."""
        ...


class WorldKind(Protocol):
    """One environment class, examined once: everything that is the same for all its sessions."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def action_schema(self) -> dict[str, Any]: ...
    @property
    def observation_schema(self) -> dict[str, Any]: ...
    @property
    def state_schema(self) -> dict[str, Any]: ...
    @property
    def reset_schema(self) -> dict[str, Any]: ...

    @property
    def tools(self) -> tuple[ToolDescription, ...] | None:
        """None for a world without tools."""
        ...

    @property
    def is_concurrent(self) -> bool:
        """Whether several sessions may live in one process."""
        ...

    @property
    def is_replayable(self) -> bool:
        """Whether equal resets and actions give equal observations and touch nothing outside."""
        ...

    async def construct(self) -> World:
        """Make the environment of a new session, in its thread."""
        ...
