"""One virtual environment for the packages of several families, which go together."""

import contextlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corral.hosting.places import place_of
from corral.worlds import FAMILIES, Needs, World
from corral.worlds.echo import WORLD as ECHO
from support import door_games
from support.served_command import environment

SPEC = f"{__file__}:WORLD"
FAMILY_NAMES = ("gymnasium", "reasoning_gym", "textarena")
TIME_SERVER = "mcp-server-time==2026.10.10"

_NEEDS = [needs for name in FAMILY_NAMES if (needs := FAMILIES[name].needs) is not None]

WORLD = World(
    name="doors",
    summary="Nothing to play: only packages.",
    factory=ECHO.factory,
    tasks=ECHO.tasks,
    evaluation_tasks=ECHO.evaluation_tasks,
    is_win=ECHO.is_win,
    needs=Needs(
        requirements=(*(one for needs in _NEEDS for one in needs.requirements), TIME_SERVER),
        modules=tuple(module for needs in _NEEDS for module in needs.modules),
        size_mb=700,
        python=(3, 12),
    ),
)


def share(folder: Path) -> None:
    """Have every family find its environment in a folder."""
    for name, needs in zip(FAMILY_NAMES, _NEEDS, strict=True):
        with contextlib.suppress(FileExistsError):  # another worker did it
            place_of(name, needs).symlink_to(folder)


def games(
    python: str, *jobs: tuple[str, int, Sequence[Any] | None], at_once: int = 1
) -> list[dict[str, Any]]:
    """What came of games that another interpreter played: of world, seed, and calls or None."""
    told = [{"world": world, "seed": seed, "calls": calls} for world, seed, calls in jobs]
    ran = subprocess.run(
        [python, door_games.__file__, str(at_once)],
        input=json.dumps(told),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)
