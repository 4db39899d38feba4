"""Tools that another library lists, as methods of an environment class."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from corral.env.signatures import ToolSpec, method_of, python_name


def calling_methods(
    specs: Iterable[ToolSpec], *, taken: Sequence[str]
) -> dict[str, Callable[..., Any]]:
    """Methods by their names in Python; each awaits ``self._call(name, arguments)``.

    Args:
        specs: Tools by the names that they are called by there.
        taken: Names that the environment needs itself.
    """
    methods: dict[str, Callable[..., Any]] = {}
    for spec in specs:
        name = python_name(spec.name, taken=[*taken, *methods])
        methods[name] = method_of(replace(spec, name=name), _caller(spec.name))
    return methods


def _caller(name: str) -> Callable[[Any, dict[str, Any]], Any]:
    async def call(self: Any, arguments: dict[str, Any]) -> Any:
        return await self._call(name, arguments)

    return call
