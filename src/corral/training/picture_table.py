"""Tables of ``datasets`` with pictures, which are decoded row by row: all may fill memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

COLUMNS = ("image", "images")
"""Where a table has the pictures of a row beside what they are shown with."""


@dataclass(frozen=True, slots=True)
class PictureTable(Sequence[Any]):
    """Some rows of a table in some order."""

    table: Any
    order: Sequence[int]
    """Which rows of the table these are."""
    change: Callable[[Any], Any] = dict
    """What is done to a row that is read."""

    @classmethod
    def of(cls, data: Any, change: Callable[[Any], Any] = dict) -> "PictureTable | None":
        """All rows of a table, if it has pictures."""
        features = getattr(data, "features", None)
        is_one = features is not None and hasattr(data, "__len__") and _has_pictures(features)
        return cls(data, range(len(data)), change) if is_one else None

    def __len__(self) -> int:
        return len(self.order)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> "PictureTable": ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return replace(self, order=self.order[index])
        return self.change(self.table[self.order[index]])

    def without_columns(self) -> Sequence[Any]:
        """The rows without their columns of pictures, which is all that many checks need."""
        names = [name for name in COLUMNS if name in self.table.features]
        return replace(self, table=self.table.remove_columns(names))


def reordered(rows: Sequence[Any], order: Sequence[int]) -> Sequence[Any]:
    """The rows at these places."""
    if isinstance(rows, PictureTable):
        return replace(rows, order=[rows.order[place] for place in order])
    return [rows[place] for place in order]


def _has_pictures(feature: Any) -> bool:
    """Whether a type of a table is one of pictures, or has one within."""
    if isinstance(feature, Mapping):
        return any(map(_has_pictures, feature.values()))
    if isinstance(feature, list):
        return any(map(_has_pictures, feature))
    inner = getattr(feature, "feature", None)
    return type(feature).__name__ == "Image" or (inner is not None and _has_pictures(inner))
