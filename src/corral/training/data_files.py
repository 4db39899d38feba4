"""Data given as an object, a file, a folder or a hub id, as rows.

Rows are mappings of columns. Tables (Parquet, CSV, ``datasets``) put None where rows have different
keys; those holes are taken out again.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corral.errors import UsageError, require
from corral.training.hub_models import check_hub_has_dataset
from corral.training.picture_table import PictureTable
from corral.training.raw_rows import without_holes

Row = Mapping[str, Any]
KINDS = ".jsonl, .json, .parquet or .csv"
_FORMS = f"Give a list of dicts, a dataset, a file ({KINDS}), a folder of such files, or a hub id"


@dataclass(frozen=True, slots=True)
class RowStream:
    """Rows that are read as they are needed, each time from the start."""

    source: Iterable[Any]
    name: str

    def __iter__(self) -> Iterator[Row]:
        for index, row in enumerate(self.source):
            yield _checked(without_holes(row), self.name, index)


def open_rows(
    source: Any, *, name: str = "train_dataset", split: str | None = None, config: str | None = None
) -> Sequence[Row] | RowStream:
    """The rows of whatever was given.

    Args:
        source: A list of mappings, a map-style or iterable dataset, or where one is: the path of a
            file or folder, or the id of a dataset on the hub.
        name: What the user calls it, for errors.
        split: Which split of a folder or a hub dataset; None: ``train``.
        config: Which configuration of a hub dataset.

    Raises:
        UsageError: It is none of these, or a row is not a mapping.
        MissingExtraError: The package that reads it is not installed.
    """
    if isinstance(source, str | Path):
        found = _at(str(source), name, split, config)
    elif split is not None or config is not None:
        raise UsageError(f"split={split!r}: {name} is data already; a split is chosen by name.")
    else:
        found = source
    if isinstance(found, Mapping):
        splits = ", ".join(map(repr, found))
        raise UsageError(f"{name} is a mapping, with {splits}: give one of them.")
    if hasattr(found, "__len__") and hasattr(found, "__getitem__"):
        is_table = hasattr(found, "features")
        pictures = PictureTable.of(found, without_holes)
        if pictures is not None:
            return pictures
        rows = [found[index] for index in range(len(found))]
        rows = [without_holes(row) for row in rows] if is_table else rows
        return [_checked(row, name, index) for index, row in enumerate(rows)]
    if hasattr(found, "__iter__"):
        if iter(found) is found:
            raise UsageError(
                f"{name} is a {type(found).__name__}, which can be read only once: give a list."
            )
        return RowStream(found, name)
    raise UsageError(f"{name} is a {type(source).__name__}. {_FORMS}.")


def _checked(row: Any, name: str, index: int) -> Row:
    if not isinstance(row, Mapping):
        raise UsageError(f"{name}[{index}] is {row!r:.60}: each row must be a mapping of columns.")
    return row


def _at(place: str, name: str, split: str | None, config: str | None) -> Any:
    path = Path(place).expanduser()
    if path.is_file():
        if split is not None or config is not None:
            raise UsageError(
                f"{name}={place!r} is a file, which has no split and no configuration."
            )
        return _file_rows(path, name)
    if path.is_dir():
        return _folder_rows(path, name, split, config)
    if path.suffix in _READERS or place.startswith((".", "/", "~")) or place.count("/") > 1:
        raise UsageError(
            f"{name}={place!r} does not exist (looked for {path.absolute()}). {_FORMS}."
        )
    return _hub_rows(place, name, split, config)


def _file_rows(path: Path, name: str) -> list[Any]:
    reader = _READERS.get(path.suffix)
    if reader is None:
        raise UsageError(
            f"{name}={str(path)!r} is no file of data that is read here: give {KINDS}."
        )
    return reader(path, name)


def _folder_rows(path: Path, name: str, split: str | None, config: str | None) -> Any:
    """A folder that ``save_to_disk`` wrote, or one with files of a split (``train*``), or all."""
    if config is not None:
        raise UsageError(
            f"{name}={str(path)!r} is a folder, which has no configuration {config!r}."
        )
    if (path / "dataset_info.json").is_file() or (path / "dataset_dict.json").is_file():
        found = require("datasets", extra="data").load_from_disk(str(path))
        return found if not isinstance(found, Mapping) else _split_of(found, name, split)
    files = sorted(file for file in path.iterdir() if file.suffix in _READERS)
    own = [file for file in files if file.name.startswith(split or "train")]
    if split is not None and not own:
        raise UsageError(f"{name}={str(path)!r} has no file that begins with {split!r}.")
    if not files:
        raise UsageError(f"{name}={str(path)!r} has no data: no file is {KINDS}.")
    return [row for file in own or files for row in _file_rows(file, name)]


def _hub_rows(place: str, name: str, split: str | None, config: str | None) -> Any:
    datasets = require("datasets", extra="data")
    check_hub_has_dataset(place, name, Path(datasets.config.HF_DATASETS_CACHE))
    try:
        return datasets.load_dataset(place, config, split=split or "train")
    except Exception as error:
        # Anything may be raised: a missing file, a broken connection, a script of the dataset.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UsageError(
            f"{name}={place!r} is neither a file or folder here nor a dataset that the hub gives "
            f"({type(error).__name__}: {reason})."
        ) from error


def _split_of(found: Mapping[str, Any], name: str, split: str | None) -> Any:
    wanted = split or "train"
    if wanted not in found:
        raise UsageError(f"{name} has no split {wanted!r}. It has: {', '.join(map(repr, found))}.")
    return found[wanted]


def _read_json_lines(path: Path, name: str) -> list[Any]:
    rows: list[Any] = []
    for number, line in enumerate(_text(path, name).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise UsageError(f"{name}: line {number} of {path} is no JSON: {error}.") from error
    return rows


def _read_json(path: Path, name: str) -> list[Any]:
    try:
        found = json.loads(_text(path, name))
    except ValueError as error:
        raise UsageError(
            f"{name}: {path} is no JSON: {error}. One object a line goes by the name .jsonl."
        ) from error
    if not isinstance(found, list):
        raise UsageError(f"{name}: {path} holds a {type(found).__name__}: give a list of objects.")
    return found


def _read_parquet(path: Path, name: str) -> list[Any]:
    require("pyarrow", extra="data")
    from pyarrow import ArrowException, parquet

    try:
        return [without_holes(row) for row in parquet.read_table(path).to_pylist()]
    except ArrowException as error:
        raise UsageError(f"{name}: {path} cannot be read as Parquet: {error}") from error


def _read_csv(path: Path, name: str) -> list[Any]:
    require("pyarrow", extra="data")
    from pyarrow import ArrowException, csv

    options = csv.ParseOptions(newlines_in_values=True)
    try:
        return [without_holes(row) for row in csv.read_csv(path, parse_options=options).to_pylist()]
    except ArrowException as error:
        raise UsageError(f"{name}: {path} cannot be read as CSV: {error}") from error


def _text(path: Path, name: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: {path} is not UTF-8 text: {error}.") from error


_READERS = {
    ".jsonl": _read_json_lines,
    ".json": _read_json,
    ".parquet": _read_parquet,
    ".csv": _read_csv,
}
