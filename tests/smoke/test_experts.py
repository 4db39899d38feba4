"""Training a mixture of experts, whose balance loss counts over the whole step."""

from pathlib import Path
from typing import Any

import pytest
import torch

from corral import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
from support.tiny_models import save_tiny_model


def by_parity(completion_ids: list[list[int]], **_: Any) -> list[float]:
    return [sum(token % 2 for token in ids) / len(ids) for ids in completion_ids]


def constant(completion_ids: list[list[int]], **_: Any) -> list[float]:
    return [0.5] * len(completion_ids)


def trained(folder: Path, reward: Any = by_parity, **options: Any) -> GRPOTrainer:
    model = folder / "model"
    if not model.exists():
        save_tiny_model(model, family="qwen3_moe")
    chosen: dict[str, Any] = {
        "max_steps": 2,
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_completion_length": 12,
        "learning_rate": 1e-3,
        "adam_epsilon": 1e-3,
        "importance_sampling_correction": False,
    }
    made = GRPOTrainer(
        str(model),
        reward,
        GRPOConfig(output_dir=str(folder / "run"), **(chosen | options)),
        [{"prompt": "Play."}, {"prompt": "Play on, for longer."}],
    )
    made.train()
    return made


def weights(made: GRPOTrainer | SFTTrainer) -> torch.Tensor:
    return torch.cat([each.detach().flatten().clone() for each in made.model.parameters()])


def logged(made: GRPOTrainer | SFTTrainer, name: str) -> list[float]:
    return [entry[name] for entry in made.state.log_history if name in entry]


@pytest.mark.parametrize("options", [{}, {"num_iterations": 2}, {"packing": True}], ids=str)
def test_the_balance_does_not_depend_on_the_cut(tmp_path: Path, options: dict[str, Any]) -> None:
    whole, cut = (
        trained(tmp_path, router_aux_loss_coef=2.0, token_budget=budget, **options)
        for budget in (10_000, 40)
    )
    assert logged(cut, "aux_loss") == pytest.approx(logged(whole, "aux_loss"), rel=1e-5)
    assert logged(cut, "loss") == pytest.approx(logged(whole, "loss"), rel=1e-5)
    torch.testing.assert_close(weights(cut), weights(whole), rtol=1e-4, atol=2e-6)


def test_only_the_balance_moves_a_model_that_rewards_teach_nothing(tmp_path: Path) -> None:
    still = trained(tmp_path, constant, router_aux_loss_coef=0.0)
    moved = trained(tmp_path, constant, router_aux_loss_coef=1.0)
    assert logged(still, "aux_loss") == []
    assert len(logged(moved, "aux_loss")) == 2
    assert (weights(moved) - weights(still)).abs().max() > 1e-4


def test_the_model_says_what_the_balance_weighs_and_an_evaluation_has_it(tmp_path: Path) -> None:
    made = trained(tmp_path, constant)
    assert made.model.config.router_aux_loss_coef == 0.001
    loss, aux_loss = (logged(made, name) for name in ("loss", "aux_loss"))
    assert loss == pytest.approx([0.001 * each for each in aux_loss], abs=1e-7)
    found = made.evaluate([{"prompt": "Play."}])
    assert found["eval_loss"] == pytest.approx(0.001 * found["eval_aux_loss"], abs=1e-7)


@pytest.mark.parametrize("packing", [False, True])
def test_fine_tuning_keeps_experts_in_balance_however_a_step_is_cut(
    tmp_path: Path, packing: bool
) -> None:
    model = save_tiny_model(tmp_path / "model", family="qwen3_moe")
    rows = [{"text": "Once there was a number. " * n} for n in range(1, 5)]

    def tuned(budget: int, weight: float) -> SFTTrainer:
        args = SFTConfig(
            output_dir=str(tmp_path / f"run-{budget}-{weight}"),
            max_steps=2,
            learning_rate=1e-3,
            adam_epsilon=1e-3,
            packing=packing,
            max_length=128,
            token_budget=budget,
            router_aux_loss_coef=weight,
        )
        made = SFTTrainer(str(model), args, rows, rows[:2])
        made.train()
        return made

    whole, cut, without = tuned(10_000, 2.0), tuned(100, 2.0), tuned(10_000, 0.0)
    assert logged(cut, "aux_loss") == pytest.approx(logged(whole, "aux_loss"), rel=1e-5)
    torch.testing.assert_close(weights(cut), weights(whole), rtol=1e-4, atol=2e-6)
    assert logged(without, "aux_loss") == []
    assert (weights(whole) - weights(without)).abs().max() > 1e-4
    found, plain = whole.evaluate(), without.evaluate()
    assert found["eval_aux_loss"] > 1
    assert "eval_aux_loss" not in plain


def test_a_model_that_tells_of_its_routers_plays_all_the_same(tmp_path: Path) -> None:
    model = tmp_path / "model"
    save_tiny_model(model, family="qwen3_moe")
    told = {"output_router_logits": True}
    made = trained(tmp_path, router_aux_loss_coef=0.5, model_init_kwargs=told)
    again = trained(tmp_path, router_aux_loss_coef=0.5)
    torch.testing.assert_close(weights(made), weights(again), rtol=0, atol=0)
