"""Calls into an environment from the server's event loop: its thread, its limits, its faults."""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from corral.serve.faults import Code, ServeFault
from corral.serve.shared_threads import SessionThread

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def accepted(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Those of ``arguments`` that ``function`` has a parameter for."""
    names = named_parameters(function)
    if names is None:
        return dict(arguments)
    return {name: value for name, value in arguments.items() if name in names}


def named_parameters(function: Callable[..., Any]) -> frozenset[str] | None:
    """The names ``function`` takes; None if it takes any."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(parameter.name for parameter in parameters if parameter.kind in _NAMED)


def checked_reward(value: Any, what: str) -> bool | int | float | None:
    """A reward as JSON can carry it.

    Raises:
        ServeFault: It is no finite number; the message names it.
    """
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, int | float) and hasattr(value, "item"):
        value = value.item()  # a number in an array library's clothes
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ServeFault(
            Code.EXECUTION_ERROR,
            f"{what} gave the reward {str(value)[:40]}, which is no finite number.",
            fault="environment",
        )
    return value


async def close_in(thread: SessionThread, close: Callable[[], Any]) -> None:
    """Run ``close`` as the last call of a thread, and let the thread end."""
    future = thread.submit(close)
    thread.stop()
    await future
