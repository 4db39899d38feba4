from pathlib import Path
from typing import Any

import pytest

from corral.errors import UsageError, WrongTypeError
from corral.training.tasks import TaskSource, rows_of, task_from_row

ROWS = [{"prompt": f"Task {number}.", "number": number} for number in range(7)]


def source(rows: Any = ROWS, per_generation: int = 3, seed: int = 1, shuffle: bool = True) -> Any:
    return TaskSource(rows, per_generation=per_generation, seed=seed, is_shuffled=shuffle)


def numbers(made: TaskSource, generation: int) -> list[int]:
    return [task.index for task in made.tasks(generation)]


def test_an_epoch_meets_distinct_tasks_and_drops_an_incomplete_rest() -> None:
    made = source()
    assert made.generations_per_epoch == 2
    epoch = numbers(made, 0) + numbers(made, 1)
    assert len(set(epoch)) == 6


def test_each_epoch_has_an_order_of_its_own() -> None:
    made = source()
    orders = [numbers(made, 2 * epoch) + numbers(made, 2 * epoch + 1) for epoch in range(4)]
    assert len({tuple(order) for order in orders}) == 4
    assert {number for order in orders for number in order} == set(range(7))


def test_tasks_depend_on_seed_and_generation_alone() -> None:
    """A resumed run asks for generation 5 first, and in the middle of another epoch."""
    walked, jumped = source(), source()
    for generation in range(5):
        walked.tasks(generation)
    assert jumped.tasks(5) == walked.tasks(5)
    assert jumped.tasks(1) == source().tasks(1)
    assert [source(seed=2).tasks(n) for n in range(2)] != [source().tasks(n) for n in range(2)]


def test_without_shuffling_the_order_is_that_of_the_data() -> None:
    made = source(shuffle=False)
    assert [numbers(made, generation) for generation in range(3)] == [
        [0, 1, 2],
        [3, 4, 5],
        [0, 1, 2],
    ]


def test_data_smaller_than_a_generation_is_repeated_under_other_seeds() -> None:
    made = source(ROWS[:2], per_generation=5)
    tasks = made.tasks(0)
    assert sorted({task.index for task in tasks}) == [0, 1]
    assert len({task.seed for task in tasks}) == 5


def test_the_same_task_is_played_with_another_seed_in_each_generation() -> None:
    made = source(ROWS[:3], shuffle=False)
    seeds = {task.seed for generation in range(4) for task in made.tasks(generation)}
    assert len(seeds) == 12


def test_a_prompt_may_be_text_or_messages_or_nothing() -> None:
    talk = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Go."}]
    for prompt, expected in [
        ("Go.", [{"role": "user", "content": "Go."}]),
        (talk, talk),
        (None, [{"role": "user", "content": ""}]),
    ]:
        assert list(task_from_row({"prompt": prompt}, index=0, seed=0).prompt) == expected


def test_the_environment_column_names_the_environment() -> None:
    assert task_from_row({"environment": "a"}, index=0, seed=0).environment == "a"
    assert task_from_row({"environment": 3}, index=0, seed=0).environment is None


def test_a_map_style_dataset_is_taken_row_by_row() -> None:
    class Dataset:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> dict[str, int]:
            return {"number": index}

    assert rows_of(Dataset()) == [{"number": 0}, {"number": 1}]


@pytest.mark.contract(3)
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (iter(ROWS), "train_dataset is a list_iterator: give a list of dicts"),
        (
            "data.jsonl",
            r"train_dataset='data.jsonl' is a name, not rows: .*"
            r"load_dataset\(\"json\", data_files='data.jsonl', split=\"train\"\) returns",
        ),
        (Path("games.csv"), r"'games.csv' .*load_dataset\(\"csv\", data_files='games.csv'"),
        ("someone/games", r"load_dataset\('someone/games', split=\"train\"\)"),
    ],
)
def test_data_of_another_shape_is_refused(data: Any, text: str) -> None:
    with pytest.raises(WrongTypeError, match=text):
        rows_of(data)


def test_no_rows_and_a_prompt_of_another_kind_are_refused() -> None:
    with pytest.raises(UsageError, match="train_dataset has no rows"):
        source([])
    with pytest.raises(UsageError, match="prompt=7: give text, or a list of messages"):
        task_from_row({"prompt": 7}, index=0, seed=0)
