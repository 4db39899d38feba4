"""8 × 1 = 4 × 2 = 2 × 4 = 1 × 8: a step learns the same however its rows are counted and cut."""

from pathlib import Path
from typing import Any

import pytest
import torch

from corral import GRPOConfig, GRPOTrainer
from corral.algorithms import LOSSES
from support.tiny_models import tiny_model, tiny_tokenizer

LENGTHS = [3, 40, 7, 1, 25, 12, 2, 18]
SHAPES = {(8, 1): 10_000, (4, 2): 120, (2, 4): 60, (1, 8): 1}
"""Rows of a batch, batches that are accumulated, and the token budget that cuts micro-batches."""


def rollout(prompts: list[Any], trainer: GRPOTrainer) -> dict[str, Any]:
    """Completions of very unequal lengths."""
    return {
        "prompt_ids": [[65, 66, 67]] * len(prompts),
        "completion_ids": [[97 + place % 11 for place in range(length)] for length in LENGTHS],
        "logprobs": None,
    }


def by_length(completion_ids: list[list[int]], **kwargs: Any) -> list[float]:
    return [float(len(ids) % 5) for ids in completion_ids]


def step(folder: Path, shape: tuple[int, int], loss_type: str) -> tuple[dict[str, Any], Any]:
    """The numbers of one step, and the weights after it."""
    tokenizer = tiny_tokenizer()
    model = tiny_model(tokenizer).double()
    rows, accumulated = shape
    trainer = GRPOTrainer(
        model,
        by_length,
        GRPOConfig(
            output_dir=str(folder),
            max_steps=1,
            per_device_train_batch_size=rows,
            gradient_accumulation_steps=accumulated,
            num_generations=4,
            token_budget=SHAPES[shape],
            loss_type=loss_type,
            epsilon_high=3.0,
            beta=0.05,
            max_completion_length=64,
            save_strategy="no",
            save_episodes=False,
        ),
        [{"prompt": "Play."}, {"prompt": "Play again."}],
        processing_class=tokenizer,
        rollout_func=rollout,
        optimizers=(torch.optim.SGD(model.parameters(), lr=0.1), None),
    )
    trainer.train()
    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    return trainer.state.log_history[0], weights


@pytest.mark.parametrize("loss_type", sorted(LOSSES))
@pytest.mark.report("P048", "P063")
def test_a_step_does_not_depend_on_its_shape(tmp_path: Path, loss_type: str) -> None:
    results = {shape: step(tmp_path / f"{shape[0]}", shape, loss_type) for shape in SHAPES}
    numbers, weights = results.pop((8, 1))
    assert numbers["grad_norm"] > 1e-3
    for other_numbers, other_weights in results.values():
        for name in ("loss", "grad_norm", "entropy", "kl"):
            assert other_numbers[name] == pytest.approx(numbers[name], rel=1e-6, abs=1e-7), name
        torch.testing.assert_close(other_weights, weights, rtol=1e-6, atol=1e-9)
