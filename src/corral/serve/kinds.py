"""Which kind of environment a class or factory makes, and everything that is known beforehand."""

import inspect
from collections.abc import Callable
from typing import Any, cast

from pydantic import BaseModel

from corral.env.lifecycle import Home, examine, first_home, requires_own_thread
from corral.errors import EnvironmentFault, InfrastructureFault, UsageError
from corral.serve.mcp_actions import action_validator, described, family_of
from corral.serve.openenv_types import Action, Observation, State
from corral.serve.openenv_world import OpenEnvKind, is_from_openenv_base
from corral.serve.tool_world import TaskSource, ToolKind
from corral.serve.world import ToolDescription, WorldKind

RESERVED_TOOLS = frozenset({"reset", "step", "state", "close"})
"""What OpenEnv clients call themselves; no tool may be called so."""


def kind_of(
    factory: Callable[[], Any],
    action_cls: type[BaseModel] | None = None,
    observation_cls: type[BaseModel] | None = None,
    state_cls: type[BaseModel] | None = None,
    *,
    tasks: TaskSource | None = None,
    is_debug: bool = False,
) -> WorldKind:
    """Examine an environment class, or another callable that makes environments.

    What has ``step`` and ``state`` beside ``reset`` is OpenEnv-style; anything else with a
    ``reset`` is a class of tool methods. One instance is made to look at, and closed again; none of
    an OpenEnv-style class without MCP tools, which says everything itself.

    Args:
        tasks: For tool methods: ``(seed, count) -> rows``, played by resets without columns.
        is_debug: Whether errors tell the client what the environment raised.

    Raises:
        UsageError: It makes no environment; the message names the remedy.
    """
    if not callable(factory):
        raise UsageError(
            f"create_app needs a class or a function that makes environments, not a "
            f"{type(factory).__name__}. Give the class itself: each session makes its own."
        )
    if inspect.isclass(factory) and _is_openenv(factory) and not hasattr(factory, "mcp_session"):
        cls, tools = factory, None
    else:
        home = first_home(factory)
        cls = type(home.instance)
        if not _is_openenv(cls):
            return _tool_kind(factory, home, tasks, is_debug)
        tools = home.thread.submit(_mcp_tools, home.instance).result()
        _give_back(home)
    return _openenv_kind(
        factory,
        cls,
        action_cls or _hinted(cls, "step", "action") or Action,
        observation_cls or _hinted(cls, "reset", "return") or Observation,
        state_cls or State,
        tools,
        is_debug,
    )


def _is_openenv(cls: type) -> bool:
    return all(hasattr(cls, name) for name in ("reset", "step", "state"))


def _openenv_kind(
    factory: Callable[[], Any],
    cls: type,
    action_cls: type[BaseModel],
    observation_cls: type[BaseModel],
    state_cls: type[BaseModel],
    tools: tuple[ToolDescription, ...] | None,
    is_debug: bool,
) -> OpenEnvKind:
    name = cls.__name__
    return OpenEnvKind(
        name=name,
        description=f"{name} environment",
        version="1.0.0",
        factory=factory,
        cls=cls,
        validate_action=action_validator(action_cls),
        action_schema=action_cls.model_json_schema(),
        observation_schema=observation_cls.model_json_schema(),
        state_schema=state_cls.model_json_schema(),
        reset_schema=_reset_schema(cls),
        tools=tools,
        is_concurrent=bool(getattr(cls, "SUPPORTS_CONCURRENT_SESSIONS", False)),
        is_replayable=bool(getattr(cls, "REPLAYABLE", False)),
        is_one_thread=bool(getattr(cls, "REQUIRES_SINGLE_THREAD_EXECUTOR", False)),
        has_own_threads=_has_own_threads(cls) or hasattr(cls, "mcp_session"),
        is_debug=is_debug,
    )


def _tool_kind(
    factory: Callable[[], Any], home: Home, tasks: TaskSource | None, is_debug: bool
) -> ToolKind:
    kind = examine(factory, home)
    _give_back(home)
    clashing = sorted(RESERVED_TOOLS & set(kind.tools.names))
    if clashing:
        raise UsageError(
            f"{kind.name} has the tool {clashing[0]!r}, a name that OpenEnv clients use. "
            "Rename the method to serve the class."
        )
    cls = kind.cls
    close = getattr(cls, "close", None)
    described = tuple(
        ToolDescription(
            name=tool.name,
            description=tool.schema["function"]["description"],
            input_schema=tool.schema["function"]["parameters"],
            meta={"corral": {"return": tool.schema["function"].get("return")}},
        )
        for tool in kind.tools.tools
    )
    members = [getattr(cls, name, None) for name in ("reset", "get_reward", "close")]
    return ToolKind(
        name=kind.name,
        description=(inspect.getdoc(cls) or f"{kind.name} environment").split("\n", 1)[0],
        version="1.0.0",
        factory=factory,
        tool_set=kind.tools,
        is_async=any(tool.is_async for tool in kind.tools.tools)
        or any(inspect.iscoroutinefunction(member) for member in members),
        has_close=callable(close) and "close" not in kind.tools.names,
        action_schema=_tool_action_schema(described),
        observation_schema=_TOOL_OBSERVATION,
        state_schema=_TOOL_STATE,
        reset_schema=_reset_schema(cls),
        tools=described,
        is_concurrent=bool(getattr(cls, "SUPPORTS_CONCURRENT_SESSIONS", True)),
        is_replayable=bool(getattr(cls, "REPLAYABLE", False)),
        has_own_threads=_has_own_threads(cls),
        tasks=tasks,
        is_debug=is_debug,
    )


def _has_own_threads(cls: type) -> bool:
    """Asynchronous code keeps its event loop, and that its thread, whatever the class says."""
    if requires_own_thread(cls):
        return True
    members = (getattr(cls, name) for name in dir(cls) if not name.startswith("__"))
    return any(
        inspect.iscoroutinefunction(member) and not is_from_openenv_base(member)
        for member in members
    )


_TOOL_STATE: dict[str, Any] = {
    "title": "State",
    "type": "object",
    "properties": {
        "episode_id": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "step_count": {"type": "integer", "minimum": 0},
        "done": {"type": "boolean"},
    },
    "required": ["episode_id", "step_count", "done"],
}
_TOOL_OBSERVATION: dict[str, Any] = {
    "title": "ToolObservation",
    "type": "object",
    "properties": {
        "tool_name": {"type": "string"},
        "result": {"description": "Text, content blocks, or null."},
        "error": {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {
                        "error_type": {"type": "string"},
                        "message": {"type": "string"},
                    },
                    "required": ["error_type", "message"],
                },
                {"type": "null"},
            ]
        },
        "tools": {"type": "array", "items": {"type": "object"}},
        "metadata": {"type": "object"},
    },
}


def _tool_action_schema(tools: tuple[ToolDescription, ...]) -> dict[str, Any]:
    def action(kind: str, **more: Any) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"type": {"const": kind}, **more},
            "required": ["type", *(["tool_name"] if more else [])],
            "additionalProperties": False,
        }

    calls = [
        action("call_tool", tool_name={"const": tool.name}, arguments=tool.input_schema)
        for tool in tools
    ]
    return {
        "title": "ToolAction",
        "type": "object",
        "oneOf": [*calls, action("list_tools"), action("finish")],
    }


def _reset_schema(cls: type) -> dict[str, Any]:
    parameters = list(inspect.signature(cast("Any", cls).reset).parameters.values())[1:]
    properties: dict[str, Any] = {}
    required: list[str] = []
    takes_any = False
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            takes_any = True
        elif parameter.kind is not inspect.Parameter.VAR_POSITIONAL:
            properties[parameter.name] = {}
            if parameter.default is inspect.Parameter.empty:
                required.append(parameter.name)
    schema = {"type": "object", "properties": properties, "additionalProperties": takes_any}
    return schema | ({"required": required} if required else {})


def _hinted(cls: type, method: str, name: str) -> type[BaseModel] | None:
    """The model a method's signature names, for those who did not pass it."""
    try:
        hints = inspect.get_annotations(getattr(cls, method), eval_str=True)
    except Exception:  # noqa: BLE001 - an annotation is code, and may raise anything
        return None
    hint = hints.get(name)
    return hint if inspect.isclass(hint) and issubclass(hint, BaseModel) else None


def _mcp_tools(instance: Any) -> tuple[ToolDescription, ...] | None:
    if not hasattr(instance, "mcp_session"):
        return None
    listed = instance.step(family_of(type(instance)).ListToolsAction())
    return tuple(described(tool) for tool in listed.tools)


def _give_back(home: Home) -> None:
    """Close an instance that was only looked at; sessions make their own."""
    home.thread.submit(_close, home.instance).result()
    home.leave()


def _close(instance: Any) -> None:
    close = getattr(instance, "close", None)
    if not callable(close) or inspect.iscoroutinefunction(close):
        return
    try:
        if not inspect.signature(close).parameters:
            close()
    except (EnvironmentFault, InfrastructureFault):
        raise
    except Exception as error:
        raise EnvironmentFault(
            f"{type(instance).__name__}.close raised {type(error).__name__}: {error}"
        ) from error
