"""One process at a time writes into a run folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corral.errors import UsageError

try:
    import fcntl
except ImportError:  # Windows has no such locks: nobody is kept out there
    fcntl = None

_held: dict[tuple[int, int], int] = {}
"""By device and inode: how often this process holds a folder, whatever it is called by now."""


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Keep other processes out of an existing folder, on whose inode the lock is.

    The same process may enter several times. The system lets go when the process ends, however it
    does. Where a file system has no locks, nobody is kept out.

    Raises:
        UsageError: Another process is in.
    """
    if fcntl is None:
        yield
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        stat = os.fstat(place)
        key = (stat.st_dev, stat.st_ino)
        if key not in _held:
            _lock(place, folder)
        _held[key] = _held.get(key, 0) + 1
        try:
            yield
        finally:
            _held[key] -= 1
            if not _held[key]:
                del _held[key]
    finally:
        os.close(place)


def _lock(place: int, folder: Path) -> None:
    assert fcntl is not None
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"Another process is training in {folder}: wait for it, stop it, or choose another "
            "folder (--output, or output_dir in a script)."
        ) from None
    except OSError:
        return  # a file system without locks
