"""MCP's tools as actions of OpenEnv-style classes: ours, or those of the ``openenv`` package."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from pydantic import BaseModel

from corral.serve.world import ToolDescription


def family_of(cls: type) -> Any:
    """The module with the MCP actions that fit a class: of the package its bases come from."""
    is_official = any(base.__module__.startswith("openenv.") for base in cls.__mro__)
    home = "openenv.core.env_server.mcp_types" if is_official else "corral.serve.openenv_types"
    return import_module(home)


def action_validator(action_cls: type[BaseModel]) -> Callable[[Any], Any]:
    """How JSON becomes an action: the class itself, and MCP's actions where they are allowed.

    They are where the class is OpenEnv's base `Action` or itself one of them.
    """
    validate = action_cls.model_validate
    if not _allows_mcp(action_cls):
        return validate
    family = family_of(action_cls)
    mcp = {"list_tools": family.ListToolsAction, "call_tool": family.CallToolAction}

    def validate_either(data: Any) -> Any:
        kind = data.get("type") if isinstance(data, Mapping) else None
        chosen = mcp.get(kind) if isinstance(kind, str) else None
        return (chosen.model_validate if chosen is not None else validate)(data)

    return validate_either


def described(tool: Any) -> ToolDescription:
    """A tool as MCP lists it, whichever package described it."""
    schema = getattr(tool, "inputSchema", None) or getattr(tool, "input_schema", None) or {}
    return ToolDescription(
        name=tool.name, description=tool.description or "", input_schema=dict(schema)
    )


def _allows_mcp(action_cls: type[BaseModel]) -> bool:
    is_action = any(base.__name__ == "Action" for base in action_cls.__mro__)
    return is_action and action_cls.__name__ in ("Action", "ListToolsAction", "CallToolAction")
