"""Calling reward functions: which arguments one gets, and what it may return."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from corral.env.contract import LARGEST_REWARD
from corral.env.threads import await_user_code, run_in_thread
from corral.errors import UsageError
from corral.rollout.reward_functions import RewardFunction
from corral.rollout.tasks_together import run_together

_LIVE = frozenset({"environments", "trainer_state"})
"""Arguments that are the run's own objects; the others are copies."""


async def call_all(
    functions: Sequence[RewardFunction],
    arguments: Mapping[str, Any],
    count: int,
) -> dict[str, list[float | None]]:
    """By name: what each function returned for ``count`` episodes.

    Synchronous functions run one after another in a thread, then all asynchronous ones together.

    Raises:
        UsageError: A function raised, or returned the wrong number or kind of values.
    """
    returned: dict[str, Any] = {}
    asynchronous = [function for function in functions if _is_async(function.function)]
    for function in functions:
        if function not in asynchronous:
            call = partial(_call, function, arguments)
            returned[function.name] = await run_in_thread(call)
    awaited = await run_together([_call_async(each, arguments) for each in asynchronous])
    returned |= dict(zip((each.name for each in asynchronous), awaited, strict=True))
    return {each.name: _values(each.name, returned[each.name], count) for each in functions}


def _call(function: RewardFunction, arguments: Mapping[str, Any]) -> Any:
    accepted = _own(_accepted(function, arguments))
    try:
        return function.function(**accepted)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(_raised(function, error)) from error


async def _call_async(function: RewardFunction, arguments: Mapping[str, Any]) -> Any:
    accepted = _own(_accepted(function, arguments))
    try:
        return await await_user_code(function.function(**accepted))
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(_raised(function, error)) from error


def _own(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments whose lists and dicts a function may change: the run goes on with its own."""
    return {name: value if name in _LIVE else _copied(value) for name, value in arguments.items()}


def _copied(value: Any) -> Any:
    """The containers anew, what they hold (text, images, tensors) as it is."""
    if type(value) is dict:
        return {key: _copied(each) for key, each in cast("dict[Any, Any]", value).items()}
    if type(value) is list:
        return [_copied(each) for each in cast("list[Any]", value)]
    return value


def _raised(function: RewardFunction, error: Exception) -> str:
    return f"Reward function {function.name!r} raised {type(error).__name__}: {error}"


def _accepted(function: RewardFunction, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that the function's signature takes; all of them with ``**kwargs``."""
    try:
        parameters = inspect.signature(function.function).parameters.values()
    except ValueError:  # some builtins have no signature
        return dict(arguments)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return dict(arguments)
    required = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    missing = [name for name in required if name not in arguments]
    if missing:
        raise UsageError(
            f"Reward function {function.name!r} has a parameter {missing[0]!r} that is neither a "
            f"column of the data nor one of {', '.join(sorted(arguments))}."
        )
    names = {parameter.name for parameter in parameters}
    return {name: value for name, value in arguments.items() if name in names}


def _values(name: str, returned: Any, count: int) -> list[float | None]:
    # An array of no dimension has a __len__ that raises, and a shape of ().
    is_list = hasattr(returned, "__len__") and getattr(returned, "shape", None) != ()
    if isinstance(returned, str | Mapping) or not is_list:
        raise UsageError(
            f"Reward function {name!r} returned {returned!r:.80}: return a list with one number "
            f"(or None) for each of the {count} completions."
        )
    if len(returned) != count:
        raise UsageError(
            f"Reward function {name!r} returned {len(returned)} values for {count} completions: "
            "return one number (or None) for each."
        )
    return [_number(name, value) for value in returned]


def _number(name: str, value: Any) -> float | None:
    if value is None:
        return None
    number = _as_float(value)
    if number is None:
        raise UsageError(
            f"Reward function {name!r} returned the value {value!r:.80}: a reward is a number, or "
            "None where the function does not apply."
        )
    if abs(number) >= LARGEST_REWARD:
        raise UsageError(
            f"Reward function {name!r} returned {number}: a reward must be finite, and below "
            f"{LARGEST_REWARD:g} or its square is not."
        )
    return None if math.isnan(number) else number


def _as_float(value: Any) -> float | None:
    """A number of any library; None for what is none, such as an array of several."""
    if isinstance(value, str) or not hasattr(value, "__float__"):
        return None
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None


def _is_async(function: Callable[..., Any]) -> bool:
    target: Any = function
    while isinstance(target, partial):
        target = target.func
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(
        getattr(target, "__call__", None)  # noqa: B004 - looks at the method, does not test for it
    )
