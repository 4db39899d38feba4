"""Find what ``corral serve ENV`` names, whichever kind of environment it is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from corral.env.registry import resolve
from corral.serve.tool_world import TaskSource
from corral.worlds.registry import find_world, is_named
from corral.worlds.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What is to be served."""

    name: str | None
    """The name in task routes; None for the class's."""
    factory: Callable[[], Any]
    tasks: TaskSource | None = None
    """What resets without columns play."""


def find_served(spec: str) -> Served:
    """The built-in world, class, function or world object that ``spec`` names.

    Raises:
        UsageError: There is none; the message says what there is.
    """
    if is_named(spec):
        return _of_world(find_world(spec))
    found = resolve(spec, also=World)
    return _of_world(found) if isinstance(found, World) else Served(name=None, factory=found)


def _of_world(world: World) -> Served:
    name = world.name if ":" not in world.name else None
    return Served(name=name, factory=world.factory, tasks=world.tasks)
