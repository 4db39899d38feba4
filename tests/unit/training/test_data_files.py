"""Data from objects, files and folders."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corral.errors import UsageError
from corral.training.data_files import RowStream, open_rows

datasets = pytest.importorskip("datasets", reason="datasets is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:builtin type:DeprecationWarning")

ROWS: list[dict[str, Any]] = [
    {"prompt": "Grüße\n", "secret": 3, "call": {"a": 1}},
    {"prompt": "Two", "secret": 4, "call": {"b": "x"}},
]


def _lines(path: Path) -> None:
    path.write_text("\n".join(json.dumps(row) for row in ROWS) + "\n\n", encoding="utf-8")


def _parquet(path: Path) -> None:
    datasets.Dataset.from_list(ROWS).to_parquet(str(path))


WRITERS: dict[str, Callable[[Path], Any]] = {
    "data.jsonl": _lines,
    "data.json": lambda path: path.write_text(json.dumps(ROWS), encoding="utf-8"),
    "data.parquet": _parquet,
}


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_a_file_is_its_rows(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    assert open_rows(tmp_path / name) == ROWS
    assert open_rows(str(tmp_path)) == ROWS


def test_a_csv_file_has_numbers_and_texts(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text('prompt,secret\n"Find, it\nnow",3\nAgain,4\n')
    rows = [{"prompt": "Find, it\nnow", "secret": 3}, {"prompt": "Again", "secret": 4}]
    assert open_rows(tmp_path / "data.csv") == rows


def test_a_folder_has_splits_by_file_name(tmp_path: Path) -> None:
    (tmp_path / "train-0.jsonl").write_text('{"n": 1}\n')
    (tmp_path / "train-1.jsonl").write_text('{"n": 2}\n')
    (tmp_path / "test.jsonl").write_text('{"n": 3}\n')
    assert open_rows(tmp_path) == [{"n": 1}, {"n": 2}]
    assert open_rows(tmp_path, split="test") == [{"n": 3}]
    with pytest.raises(UsageError, match="has no file that begins with 'dev'"):
        open_rows(tmp_path, split="dev")


def test_a_saved_dataset_is_a_folder_too(tmp_path: Path) -> None:
    data = datasets.Dataset.from_list(ROWS)
    data.save_to_disk(tmp_path / "one")
    assert open_rows(tmp_path / "one") == ROWS
    datasets.DatasetDict({"train": data, "test": data.select([0])}).save_to_disk(tmp_path / "two")
    assert open_rows(tmp_path / "two") == ROWS
    assert open_rows(tmp_path / "two", split="test") == ROWS[:1]
    with pytest.raises(UsageError, match=r"no split 'dev'\. It has: 'train', 'test'"):
        open_rows(tmp_path / "two", split="dev")


def test_a_dataset_has_no_holes_and_a_list_keeps_its_none() -> None:
    assert open_rows(datasets.Dataset.from_list(ROWS)) == ROWS
    assert open_rows([{"n": None}]) == [{"n": None}]


def test_an_iterable_dataset_is_read_again_each_time() -> None:
    stream = open_rows(datasets.Dataset.from_list(ROWS).to_iterable_dataset())
    assert isinstance(stream, RowStream)
    assert list(stream) == list(stream) == ROWS


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (None, "train_dataset is a NoneType. Give a list of dicts, a dataset, a file"),
        (["Hi"], r"train_dataset\[0\] is 'Hi': each row must be a mapping"),
        (iter([{}]), "can be read only once: give a list"),
        ({"train": [], "test": []}, "is a mapping, with 'train', 'test': give one of them"),
        ("nowhere.jsonl", r"'nowhere.jsonl' does not exist \(looked for /"),
        ("./nowhere", "'./nowhere' does not exist"),
    ],
)
def test_what_is_no_data_is_told(source: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        open_rows(source)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.jsonl", '{"n": 1}\n{"n":', r"line 2 of .*a.jsonl is no JSON"),
        ("a.json", '{"n": 1}\n{"n": 2}', "One object a line goes by the name .jsonl"),
        ("a.json", '{"n": 1}', "holds a dict: give a list of objects"),
        ("a.parquet", "PAR?", "cannot be read as Parquet"),
        ("a.csv", "a,b\n1\n", "cannot be read as CSV"),
        ("a.txt", "Hi", "is no file of data that is read here: give .jsonl, .json, .parquet"),
    ],
)
def test_a_file_that_cannot_be_read_is_told(
    tmp_path: Path, name: str, content: str, words: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(UsageError, match=words):
        open_rows(tmp_path / name)


def test_a_hub_id_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(UsageError, match="'nobody/nothing' is neither a file or folder here nor a"):
        open_rows("nobody/nothing", split="test", config="small")


def test_a_split_is_for_names_only(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a split is chosen by name"):
        open_rows(ROWS, split="train")
    (tmp_path / "a.jsonl").write_text("{}")
    with pytest.raises(UsageError, match="is a file, which has no split"):
        open_rows(tmp_path / "a.jsonl", split="train")
