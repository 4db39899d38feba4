"""Rows that cannot be played are told by their number, before anything is."""

import logging
from typing import Any

import datasets
import pytest

from corral import GRPOConfig, UsageError
from corral.env import prepare
from corral.training.evaluating import evaluation_tasks
from corral.training.playing import task_source
from corral.training.row_checks import check_rows


class Anything:
    def reset(self, **row: Any) -> None: ...


class Level:
    def reset(self, prompt: Any, level: int, hint: str = "") -> None: ...


ANY = {None: prepare(Anything)}
LEVEL = {None: prepare(Level)}
BOTH = {"any": prepare(Anything), "level": prepare(Level)}
GO = {"prompt": "Go."}


def test_rows_say_what_to_play() -> None:
    check_rows([GO], {})
    check_rows([{"level": 3}], ANY)
    check_rows([{"environment": "any"}, {"environment": "any", "prompt": "Go."}], BOTH)
    with pytest.raises(UsageError, match=r"train_dataset\[1\] is \('a', 1\): each row must be"):
        check_rows([GO, ("a", 1)], {})
    with pytest.raises(UsageError, match=r"train_dataset\[1\] has no `prompt` .*columns: text"):
        check_rows([GO, {"text": "Go."}], {})
    with pytest.raises(UsageError, match=r"train_dataset\[1\] has no `prompt`, which other rows"):
        check_rows([GO, {"level": 3}], ANY)
    with pytest.raises(
        UsageError, match=r"train_dataset\[1\] .*'c', which is not among .*: 'any', 'level'"
    ):
        check_rows([{"environment": "any"}, {"environment": "c"}], BOTH)
    with pytest.raises(UsageError, match="environment=None"):
        check_rows([GO], BOTH)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (5, r"train_dataset\[1\]: prompt=5"),
        ([{"content": "Go."}], r"train_dataset\[1\]: prompt\[0\] is .* needs a `role`"),
        ([{"role": "user", "content": 5}], r"train_dataset\[1\]: prompt\[0\] has content=5"),
        (None, r"train_dataset\[1\]: prompt is None. Give text or messages"),
        ("", r"train_dataset\[1\]: prompt is ''. Give"),
        ([], r"train_dataset\[1\]: prompt is \[\]. Give"),
    ],
)
@pytest.mark.parametrize("kinds", [{}, ANY])
def test_a_prompt_that_says_nothing_or_is_no_conversation_is_told(
    kinds: Any, prompt: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        check_rows([GO, {"prompt": prompt}], kinds)


def test_where_no_row_has_a_prompt_the_environment_brings_it() -> None:
    check_rows(datasets.Dataset.from_list([{"prompt": None, "level": 1}]), LEVEL)
    check_rows([GO, {"prompt": [{"role": "user", "content": ""}]}], ANY)
    with pytest.raises(UsageError, match=r"\[0\]: prompt is ''.*where reset\(\) brings the task"):
        check_rows([{"prompt": ""}], ANY)


@pytest.mark.contract(8)
@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"prompt": "Go.", "level": 1, "depth": 2},
            r"rows\[2\]: Level.reset does not take the dataset column 'depth'",
        ),
        ({"prompt": "Go."}, r"rows\[2\]: Level.reset needs 'level', which .*columns: prompt"),
    ],
)
def test_columns_are_compared_with_what_reset_takes(row: Any, message: str) -> None:
    good = {"prompt": "Go.", "level": 1}
    rows = [good, {**good, "hint": "Up."}, row]
    with pytest.raises(UsageError, match=message):
        check_rows(rows, LEVEL, name="rows")
    named = [{**each, "environment": "level"} for each in rows]
    with pytest.raises(UsageError, match=message):
        check_rows([*named[:2], named[2]], BOTH, name="rows")
    check_rows([*named[:2], {**row, "environment": "any"}], BOTH, name="rows")


@pytest.mark.contract(8)
def test_data_for_training_and_evaluation_is_checked_and_a_stream_row_by_row() -> None:
    good, bad = {"prompt": "Go.", "level": 1}, {"prompt": "Go.", "level": None, "hnt": ""}
    table = datasets.Dataset.from_list([bad])
    with pytest.raises(UsageError, match=r"eval_dataset\[0\]: Level.reset does not take .*'hnt'"):
        evaluation_tasks(table, LEVEL, seed=1)
    args = GRPOConfig(max_steps=2, shuffle_dataset=False)
    with pytest.raises(UsageError, match=r"train_dataset\[1\]: Level.reset"):
        task_source([good, bad], LEVEL, args, per_generation=1)
    stream = datasets.IterableDataset.from_generator(lambda: iter([good, bad]))
    source = task_source(stream, LEVEL, args, per_generation=1)
    source.tasks(0)
    with pytest.raises(UsageError, match=r"train_dataset\[1\]: Level.reset"):
        source.tasks(1)


def test_pictures_of_a_table_are_columns_too() -> None:
    images = datasets.Features({"prompt": datasets.Value("string"), "image": datasets.Image()})
    table = datasets.Dataset.from_list([{"prompt": "Go.", "image": None}], features=images)
    with pytest.raises(UsageError, match=r"train_dataset\[0\]: Level.reset .* column 'image'"):
        task_source(table, LEVEL, GRPOConfig(), per_generation=1)


def test_data_whose_prompts_have_another_name_is_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        check_rows([{"prompt": "Play.", "question": "?"}], ANY)
        check_rows([{"level": 1}], ANY)
        assert not caplog.records
        check_rows([{"question": "?"}], ANY)
    assert "`question` goes to reset() as an argument" in caplog.text
