"""What goes wrong in a run costs as little as it can."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import TrainerCallback

from corral import GRPOConfig, GRPOTrainer
from corral.errors import StorageError
from corral.track import RunFolder
from corral.training.checkpoint import checkpoints
from corral.training.models import disable_dropout
from corral.worlds.guess_number import GuessNumber
from support.full_disk import files_of_at_most
from support.tiny_models import tiny_model, tiny_tokenizer


def _trainer(folder: Path, reward: Any, **changes: Any) -> GRPOTrainer:
    tokenizer = tiny_tokenizer()
    settings = {
        "max_steps": 2,
        "per_device_train_batch_size": 4,
        "num_generations": 4,
        "max_completion_length": 12,
    }
    return GRPOTrainer(
        tiny_model(tokenizer),
        reward,
        GRPOConfig(output_dir=str(folder), **(settings | changes)),
        [{"prompt": "Find the number.", "secret": 7}],
        processing_class=tokenizer,
        environment_factory=GuessNumber,
    )


def _lengths(completions: list[Any], **kwargs: Any) -> list[float]:
    return [float(number) for number in range(len(completions))]


def _weights(trainer: GRPOTrainer) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in trainer.model.parameters()]


def test_a_gradient_that_is_not_finite_leaves_the_weights_alone(tmp_path: Path, caplog):
    trainer = _trainer(tmp_path, _lengths, max_steps=1)
    before = _weights(trainer)
    trainer.learner._clip = lambda: float("nan")
    trainer.train()
    assert all(torch.equal(a, b) for a, b in zip(before, _weights(trainer), strict=True))
    assert "weights stay as they are" in caplog.text


def test_steps_are_kept_when_a_reward_function_fails(tmp_path: Path, caplog):
    calls: list[int] = []

    def fails_at_last(completions: list[Any], **kwargs: Any) -> list[float]:
        calls.append(1)
        if len(calls) == 3:
            raise ConnectionError("the judge is away")
        return _lengths(completions)

    trainer = _trainer(tmp_path, fails_at_last, max_steps=5)
    with pytest.raises(Exception, match="the judge is away"):
        trainer.train()
    assert [path.name for path in checkpoints(trainer.session.checkpoint_folder)] == [
        "checkpoint-2"
    ]
    assert f"saved in {trainer.session.checkpoint_folder}/checkpoint-2." in caplog.text
    again = _trainer(tmp_path, _lengths, max_steps=3)
    again.train(resume_from_checkpoint=True)
    assert again.state.global_step == 3


def test_a_fresh_start_puts_an_earlier_run_aside(tmp_path: Path, caplog):
    folder = tmp_path / "run"
    _trainer(folder, _lengths).train()
    lines = (folder / "metrics.jsonl").read_text()
    _trainer(folder, _lengths, max_steps=1).train()
    assert (tmp_path / "run.1" / "metrics.jsonl").read_text() == lines
    assert (tmp_path / "run.1" / "checkpoints" / "grpo" / "checkpoint-2").is_dir()
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 1
    assert "resume_from_checkpoint=True" in caplog.text


def test_a_copy_beside_the_checkpoints_is_none_of_them(tmp_path: Path):
    for name in ("checkpoint-1", "checkpoint-1-best"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "state.json").write_text(json.dumps({}))
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-1"]


def test_episodes_that_cannot_be_written_do_not_end_the_training(
    tmp_path: Path, caplog, monkeypatch
):
    trainer = _trainer(tmp_path, _lengths, max_steps=1)

    def disk_is_full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunFolder, "write_episodes", disk_is_full)
    trainer.train()
    assert trainer.state.global_step == 1
    assert "are not saved" in caplog.text


def test_a_full_disk_ends_a_run_with_the_path_and_the_checkpoint_that_is_left(
    tmp_path: Path, caplog
):
    class FillsUp(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == 1:
                full.enter_context(files_of_at_most(200))

    trainer = _trainer(tmp_path, _lengths, max_steps=3, save_steps=1)
    trainer.add_callback(FillsUp())
    with ExitStack() as full, pytest.raises(StorageError) as raised:
        trainer.train()
    folder = trainer.session.checkpoint_folder
    assert f"{folder}/checkpoint-2 cannot be written: " in str(raised.value)
    assert f"The newest checkpoint is {folder}/checkpoint-1." in str(raised.value)
    again = _trainer(tmp_path, _lengths, max_steps=3)
    again.train(resume_from_checkpoint=True)
    assert again.state.global_step == 3


def test_a_model_and_metrics_that_cannot_be_written_are_told(tmp_path: Path, caplog):
    trainer = _trainer(tmp_path, _lengths, max_steps=1, save_strategy="no")
    with files_of_at_most(50):
        trainer.train()
        with pytest.raises(StorageError, match=f"{tmp_path}/model cannot be written: .*output_dir"):
            trainer.save_model(tmp_path / "model")
    assert trainer.state.global_step == 1
    assert f"{tmp_path}/metrics.jsonl cannot be written: File too large" in caplog.text
    assert "The episodes of step 1 are not saved." in caplog.text


@pytest.mark.parametrize("changes", [{"top_p": 0.5}, {"top_k": 3}, {"repetition_penalty": 1.5}])
def test_filtered_sampling_still_teaches(tmp_path: Path, changes: dict[str, Any]):
    trainer = _trainer(tmp_path, _lengths, max_steps=1, learning_rate=0.1, **changes)
    trainer.train()
    log = trainer.state.log_history[0]
    assert log["grad_norm"] > 0
    assert not any("importance_sampling_ratio" in name for name in log)


def test_dropout_that_is_a_number_is_turned_off_as_well():
    class Attention(nn.Module):
        attention_dropout = 0.1

    model = nn.Sequential(Attention())
    disable_dropout(model)
    assert model[0].attention_dropout == 0.0
    assert GRPOConfig().disable_dropout


@pytest.mark.parametrize(
    "wrong", [{"delta": -1.0}, {"epsilon_high": -3.0}, {"temperature": float("inf")}]
)
def test_numbers_that_would_train_nothing_are_refused(wrong: dict[str, float]):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        GRPOConfig(**wrong)


@pytest.mark.report("P168")
def test_a_run_that_ended_within_a_generation_goes_on_with_the_next(tmp_path: Path):
    played: list[int] = []

    def trainer(max_steps: int) -> GRPOTrainer:
        made = _trainer(tmp_path, _lengths, max_steps=max_steps, num_iterations=3)
        tasks = made.source.tasks
        made.source.tasks = lambda number: played.append(number) or tasks(number)
        return made

    trainer(2).train()
    extended = trainer(7)
    extended.train(resume_from_checkpoint=True)
    assert played == [0, 1, 2]
    assert extended.state.global_step == 7
