"""Makes something slow once for all workers of a test run."""

from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def made_once(
    factory: pytest.TempPathFactory, worker: str, name: str, make: Callable[[Path], None]
) -> Path:
    """A file that ``make`` writes, or that another worker has written already.

    Args:
        worker: The fixture ``worker_id``.
    """
    own = factory.getbasetemp()
    folder = own if worker == "master" else own.parent
    path = folder / name
    with FileLock(f"{path}.lock"):
        if not path.is_file():
            draft = path.with_suffix(".draft")
            make(draft)
            draft.rename(path)
    return path
