"""Games in the one virtual environment that has the packages of several families."""

import contextlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corral.hosting.places import place_of
from support import door_games
from support.doors_world import FAMILY_NAMES, NEEDS
from support.served_command import environment


def share(folder: Path) -> None:
    """Have every family find its environment in a folder."""
    for name, needs in zip(FAMILY_NAMES, NEEDS, strict=True):
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
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)
