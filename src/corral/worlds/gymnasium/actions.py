"""The actions of an environment as the arguments of a tool, and back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import Any

from corral.errors import UsageError

MAX_ARGUMENTS = 8
"""Numbers that one action may consist of; a model has to name each."""
_LISTED = 32
"""Up to how many whole numbers are listed as choices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """What may be done."""

    parameters: dict[str, Any]
    """JSON schema of the tool's arguments."""
    read: Callable[[Mapping[str, Any]], Any]
    """From arguments to the environment's action; raises a ValueError for what is out of range."""


def actions_of(env: Any, gym_id: str) -> Actions:
    """The actions of an environment.

    Raises:
        UsageError: They are not one to eight numbers.
    """
    spaces = _spaces()
    space = env.action_space
    if isinstance(space, spaces.Discrete):
        first, last = int(space.start), int(space.start + space.n - 1)
        names = _names(env, first, last)
        if names:
            schema = {"type": "string", "enum": list(names), "description": "What to do."}
            return Actions(
                parameters=_object({"action": schema}), read=lambda given: names[given["action"]]
            )
        return _numbers([(first, last)], is_whole=True, build=lambda values: values[0])
    limits, is_whole = _limits(space)
    if not 0 < len(limits) <= MAX_ARGUMENTS:
        raise UsageError(
            f"{gym_id} has actions of {space}. A tool takes one to {MAX_ARGUMENTS} numbers (spaces "
            "Discrete, MultiDiscrete, MultiBinary or Box): give it a wrapper that has such."
        )

    def build(values: Sequence[float]) -> Any:
        import numpy

        return numpy.array(values, dtype=space.dtype).reshape(space.shape)

    return _numbers(limits, is_whole=is_whole, build=build)


def _spaces() -> Any:
    return import_module("gymnasium.spaces")


def _names(env: Any, first: int, last: int) -> dict[str, int]:
    """The actions by name, where the environment has an enumeration of them, as MiniGrid does."""
    listed = getattr(env.unwrapped, "actions", None)
    if not (isinstance(listed, type) and issubclass(listed, Enum)):
        return {}
    names = {member.name: int(member.value) for member in listed}
    return names if sorted(names.values()) == list(range(first, last + 1)) else {}


def _limits(space: Any) -> tuple[list[tuple[float, float]], bool]:
    """The least and the largest of each number, and whether they are whole; none for the others."""
    import numpy

    spaces = _spaces()
    if isinstance(space, spaces.MultiDiscrete):
        starts = numpy.asarray(space.start).ravel()
        counts = numpy.asarray(space.nvec).ravel()
        return [(int(a), int(a + n - 1)) for a, n in zip(starts, counts, strict=True)], True
    if isinstance(space, spaces.MultiBinary):
        return [(0, 1)] * int(numpy.prod(space.shape)), True
    if isinstance(space, spaces.Box):
        low, high = space.low.ravel().tolist(), space.high.ravel().tolist()
        return list(zip(low, high, strict=True)), numpy.issubdtype(space.dtype, numpy.integer)
    return [], False


def _numbers(
    limits: Sequence[tuple[float, float]],
    *,
    is_whole: bool,
    build: Callable[[Sequence[float]], Any],
) -> Actions:
    names = ["action"] if len(limits) == 1 else [f"action_{n + 1}" for n in range(len(limits))]
    schemas = {
        name: _schema(least, most, is_whole=is_whole)
        for name, (least, most) in zip(names, limits, strict=True)
    }

    def read(given: Mapping[str, Any]) -> Any:
        for name, (least, most) in zip(names, limits, strict=True):
            if not least <= given[name] <= most:
                raise ValueError(f"{name}={given[name]}: must be from {least:g} to {most:g}.")
        return build([given[name] for name in names])

    return Actions(parameters=_object(schemas), read=read)


def _schema(least: float, most: float, *, is_whole: bool) -> dict[str, Any]:
    if is_whole and most - least < _LISTED:
        choices = list(range(int(least), int(most) + 1))
        return {"type": "integer", "enum": choices, "description": "One of the numbers."}
    schema: dict[str, Any] = {"type": "integer" if is_whole else "number"}
    if abs(least) < float("inf"):
        schema["minimum"] = least
    if abs(most) < float("inf"):
        schema["maximum"] = most
    return {**schema, "description": "A number."}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}
