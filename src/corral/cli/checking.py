"""``corral check``."""

import asyncio
import json as jsonlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.installing import Install, make_ready
from corral.cli.output import emit, prints_apart, say, screen, table
from corral.errors import UsageError

if TYPE_CHECKING:
    from corral.serve.check import Verdict

_PROBES = ("failing", "slow", "large", "breaking")


def check(
    what: Annotated[
        str, typer.Argument(help="A URL, or a world: built-in name, module:Class or path.py:Class.")
    ],
    action: Annotated[
        str | None,
        typer.Option(help="An action that works, as JSON; by default derived from /schema."),
    ] = None,
    reset: Annotated[str | None, typer.Option(help="What reset needs, as a JSON object.")] = None,
    probe: Annotated[
        list[str] | None,
        typer.Option(help=f"NAME=JSON, an action that shows something: {', '.join(_PROBES)}."),
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="CORRAL_TOKEN", help="The server's token.")
    ] = None,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Also what takes a minute or moves megabytes.")
    ] = False,
    install: Install = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Examine a server, or a world, as its OpenEnv peers rely on it.

    Exit code 0 if nothing failed, 1 otherwise.

    Example: corral check http://127.0.0.1:8000
    """
    is_url = what.startswith(("http://", "https://", "ws://", "wss://"))
    from corral.serve.check import Probes, Status, Target, run_checks

    target = Target(
        url=what,
        probes=Probes(**_probes(action, reset, probe or [])),
        headers=_bearer(token) if token else {},
    )
    here = nullcontext((what, target.headers)) if is_url else _served(what, install)
    with prints_apart(), here as served:
        target = replace(target, url=served[0], headers=served[1])
        verdicts = asyncio.run(run_checks(target, is_thorough=thorough))
    counts = {
        str(status): sum(verdict.status is status for verdict in verdicts) for status in Status
    }
    if json:
        emit({"server": what, **counts, "checks": [asdict(verdict) for verdict in verdicts]})
    else:
        _show(what, verdicts)
        say(", ".join(f"{count} {status}" for status, count in counts.items()))
    if counts[Status.FAILED]:
        raise typer.Exit(1)


@contextmanager
def _served(world: str, install: bool) -> Iterator[tuple[str, dict[str, str]]]:
    """URL and headers of a server of the world, in this process or in its own environment."""
    from corral.serve.check.loopback import SESSIONS, served_on_loopback

    hosted = make_ready(world, install=install, max_sessions=SESSIONS)
    if hosted is None:
        with served_on_loopback(world) as url:
            yield url, {}
    else:
        url, token = hosted.address()
        yield url, _bearer(token)


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _show(what: str, verdicts: "list[Verdict]") -> None:
    rows = [(v.status, ", ".join(map(str, v.items)), v.id, v.reason or v.title) for v in verdicts]
    screen.print(table(what, ["verdict", "items", "check", "what peers rely on"], rows))
    for verdict in verdicts:
        if verdict.status == "failed":
            say(f"{verdict.id}: {verdict.title}", style="bold red")
            for name in ("sent", "came", "expected"):
                say(f"  {name:<8} {getattr(verdict, name)}")


def _probes(action: str | None, reset: str | None, probes: list[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if action is not None:
        given["action"] = _json("--action", action)
    if reset is not None:
        given["reset"] = _json("--reset", reset)
        if not isinstance(given["reset"], dict):
            raise UsageError(f"--reset {reset!r} is no JSON object.")
    for text in probes:
        name, _, value = text.partition("=")
        if name not in _PROBES or not value:
            raise UsageError(
                f"--probe {text!r}: write NAME=JSON with one of {', '.join(_PROBES)} as NAME."
            )
        given[name] = _json(f"--probe {name}", value)
    return given


def _json(option: str, text: str) -> Any:
    try:
        return jsonlib.loads(text)
    except ValueError as error:
        raise UsageError(f"{option} {text!r} is no JSON: {error}.") from None
