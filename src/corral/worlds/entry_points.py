"""Worlds that installed packages add, by entry points of the group ``corral.worlds``.

A package names them in its ``pyproject.toml``; each is a :class:`World` or an environment class::

    [project.entry-points."corral.worlds"]
    maze = "maze_package.env:Maze"
"""

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from corral.errors import UsageError
from corral.worlds.world import World

GROUP = "corral.worlds"

MakeWorld = Callable[..., World]
"""From an environment class and ``name=`` to its world."""


def added_names() -> list[str]:
    """The names of all worlds that packages add; nothing of these is imported."""
    return sorted(entry_points(group=GROUP).names)


def added_world(name: str, make: MakeWorld) -> World | None:
    """The world that a package adds under ``name``; None if none does.

    Raises:
        UsageError: It cannot be loaded, or two packages add one of this name.
    """
    found = tuple(entry_points(group=GROUP, name=name))
    if not found:
        return None
    if len({point.value for point in found}) > 1:
        packages = ", ".join(sorted(_package(point) for point in found))
        raise UsageError(f"The packages {packages} each add a world {name!r}: uninstall one.")
    return _load(found[0], make)


def _load(point: EntryPoint, make: MakeWorld) -> World:
    what = f"The world {point.name!r} that {_package(point)} adds ({point.value})"
    try:
        loaded: Any = point.load()
    except Exception as error:
        raise UsageError(f"{what} cannot be imported: {type(error).__name__}: {error}") from error
    if isinstance(loaded, World):
        return replace(loaded, name=point.name)
    try:
        return make(loaded, name=point.name)
    except Exception as error:
        raise UsageError(f"{what} is no environment: {error}") from error


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "a package"
