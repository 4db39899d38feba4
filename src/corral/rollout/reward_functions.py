"""Reward columns: what a user passes as ``reward_funcs``, named and weighed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from corral.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardFunction:
    """One column of rewards: something callable with a name and a weight.

    The callable gets keyword arguments only and returns one value an episode; see :func:`score`.
    """

    name: str
    function: Callable[..., Any]
    weight: float = 1.0


def reward_functions(
    functions: Sequence[Callable[..., Any]] | Callable[..., Any] | None,
    weights: Sequence[float] | None = None,
) -> tuple[RewardFunction, ...]:
    """Name and weigh what a user passed as ``reward_funcs``; names that clash get a number.

    Raises:
        UsageError: Something is not callable, or there is not one weight for each function.
    """
    if functions is None:
        given: list[Callable[..., Any]] = []
    else:
        given = [functions] if callable(functions) else list(functions)
    if weights is not None and len(weights) != len(given):
        raise UsageError(
            f"reward_weights has {len(weights)} values for {len(given)} reward functions: give one "
            "weight for each."
        )
    named: list[RewardFunction] = []
    for index, function in enumerate(given):
        if not callable(function):
            raise UsageError(
                f"reward_funcs[{index}] is {function!r:.80}: give something callable that takes "
                "keyword arguments and returns one number for each completion."
            )
        name = _unique(_name_of(function), {column.name for column in named})
        weight = 1.0 if weights is None else float(weights[index])
        named.append(RewardFunction(name=name, function=function, weight=weight))
    return tuple(named)


def _name_of(function: Callable[..., Any]) -> str:
    target: Any = function
    while isinstance(target, partial):
        target = target.func
    name = getattr(target, "__name__", None)
    return name if isinstance(name, str) else type(target).__name__


def _unique(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
