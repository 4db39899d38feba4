"""An entropy bonus whose weight moves, through whole steps and through a resume."""

from pathlib import Path
from typing import Any

import torch

from corral import GRPOConfig, GRPOTrainer
from support.tiny_models import tiny_model, tiny_tokenizer

TOKENIZER = tiny_tokenizer()


def by_parity(completion_ids: list[list[int]], **_: Any) -> list[float]:
    return [sum(token % 2 for token in ids) / len(ids) for ids in completion_ids]


def trainer(folder: Path, **options: Any) -> GRPOTrainer:
    chosen: dict[str, Any] = {
        "max_steps": 4,
        "per_device_train_batch_size": 4,
        "num_generations": 4,
        "max_completion_length": 8,
        "learning_rate": 1e-2,
        "save_steps": 1,
        "use_adaptive_entropy": True,
        "entropy_coef_delta": 0.5,
        "entropy_target": 10.0,
    }
    return GRPOTrainer(
        tiny_model(TOKENIZER),
        by_parity,
        GRPOConfig(output_dir=str(folder), **(chosen | options)),
        [{"prompt": "Play."}],
        processing_class=TOKENIZER,
    )


def steps(made: GRPOTrainer) -> list[dict[str, Any]]:
    return [entry for entry in made.state.log_history if "entropy_coef" in entry]


def test_the_weight_moves_by_the_tokens_that_the_bonus_acts_on(tmp_path: Path) -> None:
    made = trainer(tmp_path, top_entropy_quantile=0.25)
    made.train()
    assert [entry["entropy_coef"] for entry in steps(made)] == [0.5, 1.0, 1.0, 1.0]
    assert all(entry["entropy/bonus"] > entry["entropy"] for entry in steps(made))
    # The first step has no bonus: what stands beside the weight is the mean before it.
    (first, second, *_) = steps(made)
    assert first["loss"] == first["policy_loss"]
    bonus = second["policy_loss"] - second["loss"]
    torch.testing.assert_close(bonus, 0.5 * second["entropy/bonus"], rtol=1e-4, atol=1e-4)


def test_a_resumed_run_has_the_weight_of_the_unbroken_one(tmp_path: Path) -> None:
    whole = trainer(tmp_path / "whole")
    whole.train()
    first = trainer(tmp_path / "parts")
    first.state.max_steps = 2
    first.train()
    rest = trainer(tmp_path / "parts")
    rest.train(resume_from_checkpoint=True)
    for ours, other in zip(rest.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(ours, other)
    found = [[entry["entropy_coef"] for entry in steps(made)] for made in (rest, whole)]
    assert found[0] == found[1] == [0.5, 1.0, 1.0, 1.0]
