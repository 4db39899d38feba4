"""Items of the trainer contract that a whole trainer shows; see docs/trainer-contract.md."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from corral import GRPOConfig, GRPOTrainer, UsageError
from corral.training.tasks import TaskSource
from support.counter import Counter
from support.tiny_models import tiny_model, tiny_tokenizer

EMPTY = [{"role": "user", "content": ""}]


def trainer(tmp_path: Path, *, options: dict[str, Any] | None = None, **given: Any) -> GRPOTrainer:
    tokenizer = tiny_tokenizer()
    chosen = {
        "max_steps": 3,
        "per_device_train_batch_size": 4,
        "num_generations": 2,
        "max_completion_length": 8,
        "shuffle_dataset": False,
        **(options or {}),
    }
    return GRPOTrainer(
        model=tiny_model(tokenizer),
        processing_class=tokenizer,
        args=GRPOConfig(output_dir=str(tmp_path / "run"), **chosen),
        **given,
    )


def counting(made: list[Any]) -> Callable[[], Any]:
    def factory() -> Counter:
        made.append(Counter())
        return made[-1]

    return factory


@pytest.mark.contract(4, 6)
def test_factories_are_called_once_then_as_often_as_a_batch_needs(tmp_path: Path) -> None:
    first: list[Any] = []
    second: list[Any] = []
    counts: list[tuple[int, int]] = []

    def note(environments: list[Any], **_: Any) -> list[float]:
        counts.append((len(first), len(second)))
        return [float(place % 2) for place in range(len(environments))]

    made = trainer(
        tmp_path,
        options={"max_steps": 5},
        reward_funcs=note,
        environment_factory={"first": counting(first), "second": counting(second)},
        train_dataset=[{"environment": name} for name in ("first", "first", "second", "second")],
    )
    assert (len(first), len(second)) == (1, 1)
    made.train()
    assert counts == [(4, 1), (4, 4), (4, 4), (4, 4), (4, 4)]
    made.end()


@pytest.mark.contract(7)
def test_a_row_of_the_batch_has_its_instance_in_every_step(tmp_path: Path) -> None:
    seen: list[list[Any]] = []

    def note(environments: list[Any], **_: Any) -> list[float]:
        seen.append(list(environments))
        return [0.0] * len(environments)

    trainer(
        tmp_path,
        reward_funcs=note,
        environment_factory=Counter,
        train_dataset=[{"prompt": f"Task {number}."} for number in range(6)],
    ).train()
    assert len({id(instance) for instance in seen[0]}) == 4
    assert seen == [seen[0]] * 3


@pytest.mark.contract(8, 11)
def test_without_data_max_steps_placeholder_prompts_are_played(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []

    class Asks(Counter):
        def reset(self, **row: Any) -> str:
            super().reset()
            rows.append(row)
            return "Count."

    prompts: list[Any] = []

    def note(prompts: list[Any], asked: list[Any] = prompts, **_: Any) -> list[float]:
        asked += prompts
        return [0.0] * len(prompts)

    made = trainer(tmp_path, reward_funcs=note, environment_factory=Asks)
    assert made.train().global_step == 3
    assert rows == [{"prompt": EMPTY}] * 12
    assert prompts == [[{"role": "user", "content": "Count."}]] * 12


@pytest.mark.contract(3, 8)
@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"environment_factory": {"a": Counter}}, "requires a `train_dataset`"),
        ({"environment_factory": Counter, "options": {"max_steps": -1}}, "`max_steps` must be set"),
        ({"reward_funcs": len}, "`train_dataset` is required"),
        ({"train_dataset": [{"prompt": "Go."}]}, "No reward source provided"),
        ({"environment_factory": dict, "reward_funcs": len}, "must define a callable `reset`"),
        (
            {"environment_factory": {"a": Counter}, "train_dataset": [{"environment": "b"}]},
            "not among the environments",
        ),
    ],
)
def test_what_cannot_be_played_is_refused_at_construction(
    tmp_path: Path, given: dict[str, Any], text: str
) -> None:
    with pytest.raises(UsageError, match=text) as refused:
        trainer(tmp_path, **given)
    assert isinstance(refused.value, ValueError)


@pytest.mark.contract(42)
@pytest.mark.parametrize("is_shuffled", [True, False])
def test_the_order_of_tasks_is_that_of_the_references_sampler(is_shuffled: bool) -> None:
    sampler = pytest.importorskip("trl.trainer.utils", reason="trl needs datasets").RepeatSampler
    rows = [{"prompt": f"Task {number}."} for number in range(11)]
    chunk, members, repeats = 3, 4, 6
    theirs = sampler(
        rows,
        mini_repeat_count=members,
        batch_size=chunk,
        repeat_count=repeats,
        shuffle=is_shuffled,
        seed=7,
    )
    ours = TaskSource(rows, per_generation=chunk, seed=7, is_shuffled=is_shuffled)
    played = 0
    for _ in range(3):
        order = iter(theirs)
        while batch := list(islice(order, chunk * members * repeats)):
            tasks = [task.index for task in ours.tasks(played)]
            assert batch == [index for index in tasks for _ in range(members)] * repeats
            played += 1
    assert played == 3 * (11 // 3)


@pytest.mark.contract(42)
def test_the_order_of_tasks_is_one_generator_over_all_epochs() -> None:
    rows = [{"prompt": f"Task {number}."} for number in range(5)]
    source = TaskSource(rows, per_generation=2, seed=3, is_shuffled=True)
    generator = torch.Generator().manual_seed(3)
    for epoch in range(3):
        order = torch.randperm(5, generator=generator).tolist()
        for chunk in range(2):
            tasks = [task.index for task in source.tasks(2 * epoch + chunk)]
            assert tasks == order[2 * chunk : 2 * chunk + 2]


def shout(text: str) -> str:
    """Say it louder.

    Args:
        text: What to say.
    """
    return text.upper()


class Quiet:
    """An environment without a reward of its own."""

    def reset(self, **row: Any) -> None: ...

    def whisper(self) -> str:
        """Say it softly."""
        return "psst"


@pytest.mark.contract(33)
def test_scripts_read_tools_rewards_and_environments_off_the_trainer(tmp_path: Path) -> None:
    seen: list[Any] = []

    def half(environments: list[Any], **_: Any) -> list[float]:
        assert made.environments == environments  # before the batch is scored
        seen.append(environments)
        return [0.0] * len(environments)

    made = trainer(
        tmp_path,
        options={"reward_weights": [0.5], "max_steps": 1},
        reward_funcs=half,
        tools=[shout],
        environment_factory={"count": Counter, "again": Counter, "quiet": Quiet},
        train_dataset=[{"environment": "count"}, {"environment": "quiet"}],
    )
    assert [tool.__name__ for tool in made.tools] == ["shout", "increment", "whisper"]
    assert made.reward_func_names == ["half", "Counter"]
    assert made.reward_weights.tolist() == [0.5, 1.0]
    assert (made.num_generations, made.max_completion_length) == (2, 8)
    assert made.eos_token_ids == [made.processing_class.eos_token_id]
    assert (made.chat_template, made.chat_template_kwargs) == (None, {})
    assert made.environments is None
    made.train()
    assert [type(one) for one in made.environments] == [Counter, Counter, Quiet, Quiet]
    assert seen == [made.environments]
