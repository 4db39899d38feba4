"""Rows that cannot be played cost a step, not the run."""

from pathlib import Path
from typing import Any

import pytest
import torch

from corral import GRPOConfig, GRPOTrainer, UsageError
from corral.errors import EnvironmentFault
from corral.training.checkpoint import checkpoints
from corral.training.counters import LATER_PATIENCE, PATIENCE
from support.tiny_models import CONTEXT, tiny_model, tiny_tokenizer

TOKENIZER = tiny_tokenizer()


class Gate:
    """Does not open for rows that are bad."""

    def reset(self, is_bad: bool = False, **row: Any) -> None:
        if is_bad:
            raise KeyError("level")

    def knock(self) -> str:
        """Knock."""
        return "Who is there?"


def by_place(completion_ids: list[list[int]], **_: Any) -> list[float]:
    return [float(sum(ids) % 7) for ids in completion_ids]


def row(*, is_bad: bool = False, prompt: str = "Knock.") -> dict[str, Any]:
    return {"prompt": prompt, "is_bad": is_bad}


def trainer(folder: Path, rows: list[Any], **options: Any) -> GRPOTrainer:
    """One row a generation, in the order of the data."""
    chosen: dict[str, Any] = {
        "max_steps": len(rows),
        "per_device_train_batch_size": 4,
        "num_generations": 4,
        "max_completion_length": 6,
        "shuffle_dataset": False,
        "learning_rate": 1e-2,
        "save_steps": 1,
        "save_total_limit": None,
    }
    return GRPOTrainer(
        tiny_model(TOKENIZER),
        by_place,
        GRPOConfig(output_dir=str(folder), **(chosen | options)),
        rows,
        processing_class=TOKENIZER,
        environment_factory=Gate,
    )


def weights(made: GRPOTrainer) -> torch.Tensor:
    return torch.cat([each.detach().flatten().clone() for each in made.model.parameters()])


@pytest.mark.contract(10)
@pytest.mark.report("P066", "P136")
@pytest.mark.parametrize("steps_a_generation", [1, 2])
def test_a_row_that_cannot_be_played_costs_its_steps_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, steps_a_generation: int
) -> None:
    rows = [row(), row(is_bad=True), row()]
    options = {"num_iterations": steps_a_generation, "max_steps": 3 * steps_a_generation}
    made = trainer(tmp_path, rows, **options)
    made.train()
    told = [each.getMessage() for each in caplog.records if "makes no update" in each.getMessage()]
    (line,) = told
    assert "train_dataset[1]: Gate.reset raised KeyError: 'level'" in line
    assert f"1 in a row; {LATER_PATIENCE} end the run" in line
    metrics = [each.metrics for each in made.run_folder.read_metrics()]
    bad = slice(steps_a_generation, 2 * steps_a_generation)
    assert [each["grad_norm"] > 0 for each in metrics] == [
        place not in range(*bad.indices(len(metrics))) for place in range(len(metrics))
    ]
    first = metrics[bad.start]
    assert (first["tokens/trainable"], first["outcome/environment_fault"]) == (0.0, 1.0)
    assert "reward" not in first


@pytest.mark.contract(10)
def test_a_run_resumed_at_a_bad_row_is_the_unbroken_one(tmp_path: Path) -> None:
    rows = [row(), row(is_bad=True), row(prompt="Knock twice."), row()]
    whole = trainer(tmp_path / "whole", rows)
    whole.train()
    for stop in (1, 2):
        first = trainer(tmp_path / f"parts-{stop}", rows)
        first.state.max_steps = stop
        first.train()
        rest = trainer(tmp_path / f"parts-{stop}", rows)
        rest.train(resume_from_checkpoint=True)
        assert torch.equal(weights(rest), weights(whole))


@pytest.mark.contract(10)
def test_rows_that_fail_again_and_again_end_the_run_which_is_saved(tmp_path: Path) -> None:
    rows = [row(), *[row(is_bad=True)] * (LATER_PATIENCE + 1)]
    made = trainer(tmp_path, rows, save_steps=500)
    with pytest.raises(EnvironmentFault, match=f"{LATER_PATIENCE} generations in a row") as raised:
        made.train()
    (saved,) = checkpoints(made.session.checkpoint_folder)
    assert saved.name == f"checkpoint-{1 + LATER_PATIENCE}"
    assert f"What was trained until now is saved in {saved}." in str(raised.value)
    again = trainer(tmp_path, [row()] * len(rows))
    again.train(resume_from_checkpoint=True)
    assert again.state.global_step == len(rows)


@pytest.mark.parametrize("steps", [2, PATIENCE + 2])
def test_a_run_in_which_nothing_can_be_played_ends_early_and_never_well(
    tmp_path: Path, steps: int
) -> None:
    made = trainer(tmp_path, [row(is_bad=True)] * steps, save_strategy="no")
    with pytest.raises(EnvironmentFault, match=r"Nothing is saved\. The latest: train_dataset"):
        made.train()
    assert made.state.global_step == min(steps, PATIENCE)


def test_an_evaluation_counts_rows_that_cannot_be_played(tmp_path: Path) -> None:
    made = trainer(tmp_path, [row()], per_device_eval_batch_size=4)
    numbers = made.evaluate([row(), row(is_bad=True)])
    assert numbers["eval_outcome/environment_fault"] == 0.5
    assert made.evaluate([row(is_bad=True)])["eval_outcome/environment_fault"] == 1.0


def test_prompts_that_fill_the_context_are_named_at_the_start_and_cost_a_step(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [row(), row(prompt="p" * CONTEXT), row()]
    made = trainer(tmp_path, rows)
    (told,) = [each.getMessage() for each in caplog.records]
    assert told.startswith("1 of 3 rows have a prompt that does not fit into the model's context")
    assert "train_dataset[1] (" in told
    made.train()
    assert "train_dataset[1]: The prompt of task 1 has" in caplog.text
    with pytest.raises(UsageError, match=r"2 of 2 rows .* use a model with a longer context"):
        trainer(tmp_path, [row(prompt="p" * CONTEXT)] * 2)


@pytest.mark.parametrize("name", ["train_dataset", "eval_dataset"])
def test_a_role_that_the_template_leaves_out_is_told_when_the_trainer_is_made(
    tmp_path: Path, name: str
) -> None:
    tokenizer = tiny_tokenizer()
    written = "{% set messages = messages | rejectattr('role', 'eq', 'developer') | list %}"
    tokenizer.chat_template = written + str(tokenizer.chat_template)
    talk = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Knock."}]
    rows = {"train_dataset": [row()], "eval_dataset": [row()]}
    rows[name].append({"prompt": talk, "is_bad": False})
    with pytest.raises(UsageError, match=rf"{name}\[1\]: .* leaves out .*'developer'"):
        GRPOTrainer(
            tiny_model(tokenizer),
            by_place,
            GRPOConfig(output_dir=str(tmp_path), max_steps=1),
            processing_class=tokenizer,
            environment_factory=Gate,
            **rows,
        )
