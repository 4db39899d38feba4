"""``corral install``, and worlds that other commands want."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from corral.cli.output import emit, prints_apart, say, screen, table
from corral.errors import UsageError

if TYPE_CHECKING:
    from corral.hosting import HostedEnvironment, Installed
    from corral.worlds import Family, World

Found = TypeVar("Found")

Install = Annotated[
    bool,
    typer.Option("--install", help="Make the world's virtual environment if it is not there."),
]


def install(
    name: Annotated[
        str | None,
        typer.Argument(help="A world: built-in name, family, module:WORLD or path.py:WORLD."),
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Delete its virtual environments instead.")
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="Show what is there and stop.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON objects.")] = False,
) -> None:
    """Install a world whose packages clash with others.

    It gets a virtual environment of its own, in ~/.cache/corral or in CORRAL_HOME.

    Example: corral install --list
    """
    if listed:
        _list(json)
        return
    if name is None:
        raise UsageError("Name a world, or --list what there is.")
    from corral.hosting import remove as delete
    from corral.worlds import find_installable

    with prints_apart():  # a module may be imported
        world = find_installable(name)
    if remove:
        gone = delete(world.home)
        for one in gone:
            _report(one, "removed", json)
        if not gone and not json:
            say(f"There is no virtual environment of {world.home}.")
        return
    _report(_install(world), "ready", json)
    problem = world.needs.system_problem() if world.needs is not None else None
    if problem is not None:
        say(f"{world.name} needs more than packages. {problem}", style="bold")


def wanted_world(spec: str, *, install: bool) -> "World":
    """What ``ENV`` names; a missing virtual environment is made if the user wants that."""
    from corral.hosting import find_environment

    return _with_install(lambda: find_environment(spec), install)


def make_ready(
    spec: str, *, install: bool, max_sessions: int | None = None
) -> "HostedEnvironment | None":
    """The same without looking further at the world; None if it runs in this process."""
    from corral.hosting import hosted_environment
    from corral.worlds.registry import is_url

    if is_url(spec):
        return None

    return _with_install(lambda: hosted_environment(spec, max_sessions=max_sessions), install)


def _with_install(find: Callable[[], Found], is_asked_for: bool) -> Found:
    from corral.hosting import NotInstalledError

    try:
        return find()
    except NotInstalledError as missing:
        if not (is_asked_for or _is_agreed(missing.world)):
            raise
        _report(_install(missing.world), "ready", json=False)
    return find()


def _is_agreed(world: "World") -> bool:
    """Ask who sits at the terminal, if somebody does."""
    if not _is_somebody_there():
        return False
    assert world.needs is not None
    say(
        f"{world.name} needs packages that clash with others. Make it a virtual environment of its "
        f"own (about {world.needs.size_mb} MB)? [y/N] ",
        end="",
        style="bold",
    )
    # Without a prompt of its own: that would go to standard output, among the data.
    return input().strip().lower() in ("y", "yes")


def _is_somebody_there() -> bool:
    return sys.stdin.isatty() and screen.is_terminal


def _install(world: "World | Family") -> "Installed":
    from corral.hosting import install

    with screen.status(f"Installing {world.home}") as status:
        return install(world, tell=lambda line: status.update(line[: screen.width - 4]))


def _report(one: "Installed", state: str, json: bool) -> None:
    if json:
        emit({"world": one.note.world, "state": state, **_facts(one)})
    else:
        say(f"{one.note.world}: {state}, {_megabytes(one)} MB, {one.folder}")


def _list(json: bool) -> None:
    from corral.hosting import installed_worlds

    found = installed_worlds()
    if json:
        emit({"installed": [{"world": one.note.world, **_facts(one)} for one in found]})
        return
    rows = [(one.note.world, one.note.python, _megabytes(one), str(one.folder)) for one in found]
    rows += [
        (name, None, None, f"corral install {name}")
        for name in _needy()
        if name not in {one.note.world for one in found}
    ]
    screen.print(table("Virtual environments of worlds", ["world", "Python", "MB", "where"], rows))


def _needy() -> list[str]:
    from corral.worlds import FAMILIES, WORLDS

    return [name for name, one in [*WORLDS.items(), *FAMILIES.items()] if one.needs is not None]


def _facts(one: "Installed") -> dict[str, object]:
    return {
        "folder": str(one.folder),
        "python": one.note.python,
        "size_bytes": one.note.size_bytes,
    }


def _megabytes(one: "Installed") -> int:
    return round(one.note.size_bytes / 1e6)
