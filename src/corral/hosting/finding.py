"""Finds what ``ENV`` names, and where it can run: in this process, or served from another."""

import sys
from dataclasses import replace
from pathlib import Path

from corral.env.registry import resolve
from corral.errors import UsageError
from corral.hosting.places import installed_at, place_of
from corral.hosting.server import HostedEnvironment
from corral.worlds import World, find_world, world_of
from corral.worlds.registry import is_named, is_url


class NotInstalledError(UsageError):
    """A world's virtual environment is not there yet; ``world`` is the world."""

    def __init__(self, message: str, world: World) -> None:
        super().__init__(message)
        self.world = world


def find_environment(spec: str, *, max_sessions: int | None = None) -> World:
    """The world of a built-in name, ``module:Class``, ``path.py:Class``, or a server's URL.

    A world whose packages cannot be imported here is given a factory of served environments; tasks,
    players and what counts as won are the same.

    Args:
        max_sessions: How many environments such a server bears at a time; by default the world's.

    Raises:
        UsageError: There is none, or the system lacks what it needs.
        NotInstalledError: It needs a virtual environment that is not there.
        InfrastructureFault: The server of the URL does not answer.
    """
    if is_url(spec):
        from corral.serve.client.remote import RemoteEnvironment

        return world_of(RemoteEnvironment(spec), name=spec)
    hosted = hosted_environment(spec, max_sessions=max_sessions)
    world = find_world(spec)
    return world if hosted is None else replace(world, factory=hosted)


def hosted_environment(spec: str, *, max_sessions: int | None = None) -> HostedEnvironment | None:
    """The factory of a world that cannot run in this process; None for one that can.

    Raises:
        UsageError: The system lacks what the world needs.
        NotInstalledError: Its virtual environment is not there.
    """
    world = _declared(spec)
    if world is None or world.needs is None:
        return None
    needs = world.needs
    problem = needs.system_problem()
    if problem is not None:
        raise UsageError(f"{world.name} cannot run here. {problem}")
    if needs.are_met():
        return None
    folder = place_of(world.home, needs)
    if Path(sys.prefix) == folder:  # serving there would start the same again, without end
        raise UsageError(
            f"The virtual environment of {world.name} lacks {' or '.join(needs.modules)}. Make it "
            f"anew: corral install {spec} --remove, then corral install {spec}"
        )
    installed = installed_at(folder)
    if installed is None:
        raise NotInstalledError(
            f"{world.name} needs packages that clash with others, so it runs in a virtual "
            f"environment of its own, which is not there yet (about {needs.size_mb} MB). Make it "
            f"with: corral install {needs.shared_as or spec}",
            world,
        )
    return HostedEnvironment(
        world=spec, python=installed.python, max_sessions=max_sessions or needs.max_sessions
    )


def _declared(spec: str) -> World | None:
    """The world object that ``spec`` names; None for a class, which declares nothing."""
    if is_named(spec):
        return find_world(spec)
    found = resolve(spec, also=World)
    return found if isinstance(found, World) else None
