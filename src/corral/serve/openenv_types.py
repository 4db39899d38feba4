"""OpenEnv's shapes: typed actions and observations, and the class that steps between them.

An environment written against these needs no ``openenv`` package, and one written against the
package is served just the same: the server looks at methods, not at base classes.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field


class Action(BaseModel):
    """What an agent does in one step; subclasses add the fields."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    metadata: dict[str, Any] = Field(default_factory=dict)


class Observation(BaseModel):
    """What an agent is shown; subclasses add the fields."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    done: bool = False
    reward: bool | int | float | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class State(BaseModel):
    """Where the episode stands; further fields are allowed."""

    model_config = ConfigDict(extra="allow", validate_assignment=True)

    episode_id: str | None = None
    step_count: int = Field(default=0, ge=0)


class ListToolsAction(Action):
    """Ask for the tools of the world."""

    type: Literal["list_tools"] = "list_tools"


class CallToolAction(Action):
    """Call one tool."""

    type: Literal["call_tool"] = "call_tool"
    tool_name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class ToolListing(BaseModel):
    """One tool in a `ListToolsObservation`."""

    model_config = ConfigDict(extra="forbid")

    name: str
    description: str
    input_schema: dict[str, Any]


class ToolError(BaseModel):
    """Why a tool call has no result."""

    model_config = ConfigDict(extra="forbid")

    error_type: Literal[
        "execution_error", "invalid_args", "transport_error", "tool_not_found", "timeout"
    ]
    message: str


class ListToolsObservation(Observation):
    """The tools of the world."""

    tools: list[ToolListing]


class CallToolObservation(Observation):
    """What a tool call answered."""

    tool_name: str
    result: Any = None
    error: ToolError | None = None


class EnvironmentMetadata(BaseModel):
    """What a server says about its environment."""

    name: str
    description: str
    readme_content: str | None = None
    version: str | None = "1.0.0"
    author: str | None = None
    documentation_url: str | None = None


ActionT = TypeVar("ActionT")
ObservationT = TypeVar("ObservationT")
StateT = TypeVar("StateT")


class Environment(ABC, Generic[ActionT, ObservationT, StateT]):
    """An environment that is stepped with typed actions.

    ::

        class Counter(Environment[Add, Total, State]):
            def reset(self, seed=None, episode_id=None, **kwargs) -> Total: ...
            def step(self, action: Add, timeout_s=None, **kwargs) -> Total: ...

            @property
            def state(self) -> State: ...

    ``reset_async`` and ``step_async``, where a class defines them, are used instead of the
    synchronous ones. ``close()`` frees what the environment holds.
    """

    SUPPORTS_CONCURRENT_SESSIONS: ClassVar[bool] = False
    """Whether several instances may live in one process."""
    REPLAYABLE: ClassVar[bool] = False
    """Whether equal resets and actions give equal observations and touch nothing outside."""
    REQUIRES_OWN_THREAD: ClassVar[bool] = True
    """Whether all calls to an instance must come from one thread, as browsers and SQLite want it.
    Where not, quick sessions share a thread, which makes a server several times as fast."""
    HIDDEN_STATE: ClassVar[frozenset[str]] = frozenset()
    """Fields of the state that nobody is shown before the episode is done."""

    @abstractmethod
    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> ObservationT:
        """Start an episode."""

    @abstractmethod
    def step(self, action: ActionT, timeout_s: float | None = None, **kwargs: Any) -> ObservationT:
        """Do one action."""

    @property
    @abstractmethod
    def state(self) -> StateT:
        """Where the episode stands."""

    def close(self) -> None:
        """Free everything. Called exactly once."""
