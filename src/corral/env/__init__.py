"""What an environment is: a class whose public methods are tools for a model."""

from corral.env.calls import BoundTools, ToolResult, ToolSet, tools_of
from corral.env.contract import RESERVED_NAMES, Environment, Observation
from corral.env.lifecycle import (
    EnvironmentKind,
    Home,
    call_reset,
    check_reset_columns,
    close,
    is_done,
    metrics,
    prepare,
)
from corral.env.own_process import OwnProcess
from corral.env.own_reward import call_get_reward, call_rewards, reward_parts
from corral.env.registry import resolve
from corral.env.schema import function_schema
from corral.env.tools import Tool, discover_tools

__all__ = [
    "RESERVED_NAMES",
    "BoundTools",
    "Environment",
    "EnvironmentKind",
    "Home",
    "Observation",
    "OwnProcess",
    "Tool",
    "ToolResult",
    "ToolSet",
    "call_get_reward",
    "call_reset",
    "call_rewards",
    "check_reset_columns",
    "close",
    "discover_tools",
    "function_schema",
    "is_done",
    "metrics",
    "prepare",
    "resolve",
    "reward_parts",
    "tools_of",
]
