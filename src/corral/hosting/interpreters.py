"""Finds a Python that is new enough."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from corral.errors import UsageError

Version = tuple[int, int]

OLDEST: Version = (3, 11)
"""Corral's own."""
_NEWEST_MINOR = 30
"""Up to which ``python3.N`` is looked for."""


def find_python(oldest: Version | None, newest: Version | None, *, needed_by: str) -> str:
    """A Python from ``oldest`` to ``newest``: the running one, or else the oldest that will do.

    Looked for as ``pythonX.Y`` on ``PATH``, and among the versions of pyenv.

    Args:
        oldest: None for that of Corral.
        newest: None for any.
        needed_by: Who wants it; named in the error.

    Raises:
        UsageError: There is none.
    """
    first = max(oldest or OLDEST, OLDEST)
    last = newest or (first[0], _NEWEST_MINOR)
    if first <= sys.version_info[:2] <= last:
        return sys.executable
    for place in _candidates(first, last):
        if first <= _version(place) <= last:
            return place
    wanted = _shown(first) + (f" to {_shown(last)}" if newest else " or newer")
    raise UsageError(
        f"{needed_by} needs Python {wanted}. This is Python {_shown(sys.version_info[:2])}, and no "
        f"other was found on PATH or in pyenv. Install one, such as with: "
        f"pyenv install {_shown(newest or first)}"
    )


def _candidates(first: Version, last: Version) -> Iterator[str]:
    for minor in range(first[1], last[1] + 1):
        name = f"{first[0]}.{minor}"
        found = shutil.which(f"python{name}")
        if found:
            yield found
        yield from _of_pyenv(name)


def _of_pyenv(version: str) -> list[str]:
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    places = root.glob(f"versions/{version}*/bin/python")
    wanted = re.compile(rf"{re.escape(version)}(\.\d+)?$")  # no 3.1 for 3.12, nothing unfinished
    return sorted(str(place) for place in places if wanted.match(place.parents[1].name))


def _version(place: str) -> Version:
    """What an interpreter says; (0, 0) for one that does not run, such as an idle shim of pyenv."""
    code = "import sys; print(*sys.version_info[:2])"
    try:
        told = subprocess.run(
            [place, "-c", code], capture_output=True, text=True, timeout=30, check=True
        )
        major, minor = told.stdout.split()
    except (OSError, subprocess.SubprocessError, ValueError):
        return (0, 0)
    return int(major), int(minor)


def _shown(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
