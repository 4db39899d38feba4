"""What Corral reads off the objects of users, whatever they are."""

import inspect
from collections.abc import Callable
from numbers import Real
from typing import Any, cast


def required_parameters(function: Callable[..., Any]) -> list[str]:
    """The parameters ``function`` cannot be called without."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [
        parameter.name
        for parameter in parameters
        if parameter.default is inspect.Parameter.empty
        and parameter.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    ]


def as_float(value: object) -> float | None:
    """A number, also in an array library's clothes; None for anything else."""
    if not isinstance(value, Real) and hasattr(value, "item"):
        value = cast("Any", value).item()
    return float(value) if isinstance(value, Real) else None


def shown(value: object) -> str:
    """A value in a message, cut to 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "..."
