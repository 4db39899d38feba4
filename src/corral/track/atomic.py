"""Files that are either the old ones or the new ones, whatever kills the process."""

import os
from pathlib import Path

from corral.errors import storage_boundary


def write_atomically(path: Path, data: bytes | str) -> None:
    """Replace ``path`` by ``data`` in one step; text is written as UTF-8.

    The temporary file lies beside the target, because a rename is atomic on one file system only,
    and is flushed to disk before the rename, so that a crash cannot leave an empty target.

    Raises:
        StorageError: The disk is full, or may not be written.
    """
    content = data.encode("utf-8", "replace") if isinstance(data, str) else data
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with storage_boundary(path):
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
