"""A reference that follows the policy, through whole steps and through a resume."""

from pathlib import Path
from typing import Any

import pytest
import torch

from corral import GRPOConfig, GRPOTrainer
from support.tiny_models import tiny_model, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
ROWS = [{"prompt": f"Task {number}."} for number in range(4)]


def by_parity(completion_ids: list[list[int]], **_: Any) -> list[float]:
    return [sum(token % 2 for token in ids) / len(ids) for ids in completion_ids]


def trainer(folder: Path, *, tracker: Any = None, **options: Any) -> GRPOTrainer:
    chosen: dict[str, Any] = {
        "max_steps": 6,
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_completion_length": 12,
        "learning_rate": 1e-2,
        "beta": 0.2,
        "sync_ref_model": True,
        "ref_model_mixup_alpha": 0.5,
        "ref_model_sync_steps": 2,
        "save_steps": 3,
    }
    return GRPOTrainer(
        tiny_model(TOKENIZER),
        by_parity,
        GRPOConfig(output_dir=str(folder), **(chosen | options)),
        ROWS,
        processing_class=TOKENIZER,
        tracker=tracker,
    )


def weights(model: Any) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten().clone() for parameter in model.parameters()])


class Watch:
    """Keeps the reference's weights after each step."""

    def __init__(self) -> None:
        self.trainer: Any = None
        self.policy: list[torch.Tensor] = []
        self.reference: list[torch.Tensor] = []

    def log(self, step: int, metrics: Any, stage: str) -> None:
        self.policy.append(weights(self.trainer.model))
        self.reference.append(weights(self.trainer.ref_model))

    def close(self) -> None: ...


@pytest.mark.contract(40)
@pytest.mark.parametrize("passes", [1, 2])
def test_the_reference_moves_when_it_is_due_and_not_between(tmp_path: Path, passes: int) -> None:
    watch = Watch()
    made = watch.trainer = trainer(tmp_path, num_iterations=passes, tracker=watch)
    start = weights(made.ref_model)
    made.train()
    assert torch.equal(watch.reference[0], start)
    for step in (2, 4, 6):
        before, after = watch.reference[step - 2], watch.reference[step - 1]
        expected = 0.5 * before + 0.5 * watch.policy[step - 1]
        torch.testing.assert_close(after, expected)
        assert (after - before).abs().max() > 1e-4
    for step in (3, 5):
        assert torch.equal(watch.reference[step - 1], watch.reference[step - 2])


@pytest.mark.contract(40)
@pytest.mark.parametrize("passes", [1, 3])
def test_a_resumed_run_has_the_reference_of_the_unbroken_one(tmp_path: Path, passes: int) -> None:
    whole = trainer(tmp_path / "whole", num_iterations=passes)
    whole.train()
    first = trainer(tmp_path / "parts", num_iterations=passes)
    first.state.max_steps = 3
    first.train()
    rest = trainer(tmp_path / "parts", num_iterations=passes)
    rest.train(resume_from_checkpoint=True)
    assert torch.equal(weights(rest.ref_model), weights(whole.ref_model))
    assert torch.equal(weights(rest.model), weights(whole.model))
    kl = [
        [entry["kl"] for entry in made.state.log_history if "kl" in entry] for made in (rest, whole)
    ]
    assert kl[0] == kl[1]
    assert len(kl[0]) == 6
    assert kl[0][-1] > 1e-4


def test_a_checkpoint_of_a_still_reference_says_that_it_has_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trainer(tmp_path, sync_ref_model=False, max_steps=3).train()
    made = trainer(tmp_path)
    start = weights(made.ref_model)
    made.session.resume(True)
    assert "reference: not saved, starts anew" in caplog.text
    assert torch.equal(weights(made.ref_model), start)


def test_a_still_reference_is_not_saved(tmp_path: Path) -> None:
    made = trainer(tmp_path, sync_ref_model=False, max_steps=1)
    start = weights(made.ref_model)
    made.train()
    assert torch.equal(weights(made.ref_model), start)
    assert not list(made.session.checkpoint_folder.glob("*/reference.safetensors"))


def test_without_a_kl_term_there_is_no_reference(tmp_path: Path) -> None:
    assert trainer(tmp_path, sync_ref_model=False, beta=0.0).ref_model is None
