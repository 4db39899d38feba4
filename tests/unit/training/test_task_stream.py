"""Tasks from rows that can only be read one after the other."""

from collections.abc import Iterator
from typing import Any

import datasets
import pytest

from corral import GRPOConfig, UsageError
from corral.errors import WrongTypeError
from corral.training.evaluating import evaluation_rows, evaluation_sets, evaluation_tasks
from corral.training.playing import task_source
from corral.training.task_stream import TaskStream

ROWS = [{"prompt": f"Task {number}.", "number": number} for number in range(7)]


class Stream:
    """Counts how many rows were read; has neither a length nor numbered rows."""

    def __init__(self, rows: list[Any] | None = None) -> None:
        self.rows = ROWS if rows is None else rows
        self.read = 0

    def __iter__(self) -> Iterator[Any]:
        for row in self.rows:
            self.read += 1
            yield row


def stream(data: Any = None, **options: Any) -> TaskStream:
    chosen = {"per_generation": 3, "seed": 1, "is_shuffled": False}
    return TaskStream(Stream() if data is None else data, {}, **(chosen | options))


def shuffled(seed: int = 1) -> TaskStream:
    data = datasets.Dataset.from_list(ROWS).to_iterable_dataset()
    return stream(data, is_shuffled=True, seed=seed)


def numbers(made: TaskStream, generation: int) -> list[Any]:
    return [task.columns["number"] for task in made.tasks(generation)]


@pytest.mark.contract(42)
def test_rows_come_in_the_order_of_the_data_without_the_rest_of_a_pass() -> None:
    made = stream()
    assert [numbers(made, n) for n in range(4)] == [[0, 1, 2], [3, 4, 5], [0, 1, 2], [3, 4, 5]]


@pytest.mark.contract(42)
def test_each_pass_is_shuffled_anew() -> None:
    made = shuffled()
    passes = [numbers(made, 2 * n) + numbers(made, 2 * n + 1) for n in range(4)]
    assert all(len(set(one)) == 6 for one in passes)
    assert len({tuple(one) for one in passes}) == 4


@pytest.mark.contract(42)
def test_tasks_depend_on_seed_and_generation_alone() -> None:
    """A resumed run asks for a generation in the middle of another pass first."""
    walked, jumped = shuffled(), shuffled()
    played = [walked.tasks(generation) for generation in range(6)]
    assert jumped.tasks(5) == played[5]
    assert jumped.tasks(1) == played[1]
    assert shuffled(seed=2).tasks(0) != played[0]
    assert len({task.seed for tasks in played for task in tasks}) == 18


def test_rows_are_read_when_they_are_needed() -> None:
    data = Stream()
    made = stream(data)
    assert data.read == 1  # the first one, to see that it can be played
    made.tasks(0)
    assert data.read == 1 + 3
    made.tasks(1)
    assert data.read == 1 + 6


def test_a_row_that_cannot_be_played_is_named_when_it_comes() -> None:
    made = stream(Stream([*ROWS[:4], {"text": "Go."}, *ROWS]))
    made.tasks(0)
    with pytest.raises(UsageError, match=r"train_dataset\[4\] has no `prompt`"):
        made.tasks(1)


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        (Stream([]), UsageError, "train_dataset has no rows"),
        (Stream([{"text": "Go."}]), UsageError, r"train_dataset\[0\] has no `prompt`"),
        (Stream([3]), UsageError, r"train_dataset\[0\] is 3: each row must be a mapping"),
        (iter(ROWS), WrongTypeError, "can be read only once: give a list, or .*from_generator"),
    ],
)
def test_data_that_cannot_be_played_is_told_before_anything_is(
    data: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        stream(data)


def test_a_stream_without_a_buffer_cannot_be_shuffled() -> None:
    with pytest.raises(UsageError, match=r"shuffle_dataset=True with a Stream.*IterableDataset"):
        stream(is_shuffled=True)


def test_a_stream_shorter_than_a_generation_says_both_numbers() -> None:
    with pytest.raises(UsageError, match="has 7 rows, and a generation takes 8: give a list"):
        stream(per_generation=8).tasks(0)


@pytest.mark.contract(3)
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "max_steps must be set: train_dataset is a stream"),
        ({"max_steps": 3, "save_strategy": "epoch"}, 'save_strategy="epoch" with a stream'),
        ({"max_steps": 3, "eval_strategy": "epoch"}, 'eval_strategy="epoch" with a stream'),
    ],
)
def test_a_run_over_a_stream_knows_when_to_end(options: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        task_source(Stream(), {}, GRPOConfig(**options), per_generation=2)


def test_evaluations_read_streams_and_dicts_of_datasets() -> None:
    data = datasets.Dataset.from_list(ROWS)
    every = {"listed": data, "streamed": data.to_iterable_dataset()}
    for sets in (every, datasets.DatasetDict(listed=data)):
        for one in evaluation_sets(sets).values():
            tasks = evaluation_tasks(evaluation_rows(one), {}, seed=1)
            found = [task.columns["number"] for task in tasks]
            assert found == list(range(7))
    (name,) = evaluation_sets(datasets.IterableDatasetDict(a=every["streamed"]))
    assert name == "a"
