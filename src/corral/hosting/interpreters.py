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

_NEWEST_MINOR = 30
"""Up to which ``python3.N`` is looked for."""


def find_python(oldest: Version | None, *, needed_by: str) -> str:
    """A Python that is ``oldest`` or newer: the running one, or else the oldest that will do.

    Looked for as ``pythonX.Y`` on ``PATH``, and among the versions of pyenv.

    Args:
        needed_by: Who wants it; named in the error.

    Raises:
        UsageError: There is none.
    """
    if oldest is None or sys.version_info[:2] >= oldest:
        return sys.executable
    for place in _candidates(oldest):
        if _version(place) >= oldest:
            return place
    wanted, running = _shown(oldest), _shown(sys.version_info[:2])
    raise UsageError(
        f"{needed_by} needs Python {wanted} or newer. This is Python {running}, and no python"
        f"{wanted} or newer was found on PATH or in pyenv. Install one, such as with: "
        f"pyenv install {wanted}"
    )


def _candidates(oldest: Version) -> Iterator[str]:
    major, minor = oldest
    for newer in range(minor, _NEWEST_MINOR):
        found = shutil.which(f"python{major}.{newer}")
        if found:
            yield found
        yield from _of_pyenv(f"{major}.{newer}")


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
