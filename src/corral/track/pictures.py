"""Pictures of episodes as files beside them: each is written once, under its digest."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from corral.records.images import is_picture, picture_digest
from corral.track.atomic import write_atomically

FOLDER = "images"
"""Within the folder of the episodes."""


class PictureFiles:
    """Replaces the pictures within a value by the names of their files."""

    def __init__(self, folder: Path) -> None:
        """
        Args:
            folder: Where the episodes are; names are relative to it.
        """
        self._folder = folder

    def replaced(self, value: Any) -> Any:
        """The value with a name in place of each picture, and a size in place of other bytes."""
        if isinstance(value, Mapping):
            return {key: self.replaced(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.replaced(item) for item in value]
        if isinstance(value, bytes):
            return f"<{len(value)} bytes>"
        return self.name(value) if is_picture(value) else value

    def name(self, picture: Any) -> str:
        """The name of a picture's file, which is written if it is not there yet."""
        name = f"{FOLDER}/{picture_digest(picture)}.png"
        path = self._folder / name
        if not path.exists():
            content = BytesIO()
            # Episodes wait for this, and pixels of screens are small at any level.
            picture.save(content, format="PNG", compress_level=1)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content.getvalue())
        return name
