import math
from typing import Any

import pytest
import torch
from torch import nn

from corral.errors import UsageError
from corral.training import GRPOConfig, SFTConfig
from corral.training.optimizers import make_optimizer
from corral.training.processes import make_accelerator
from corral.training.schedules import SCHEDULES, rate_schedule
from corral.training.step_loss import loss_options


def rates(steps: int, **options: Any) -> list[float]:
    factor = rate_schedule(GRPOConfig(**options), steps)
    return [factor(step) for step in range(steps)]


def test_the_rate_falls_in_a_line_to_zero() -> None:
    assert rates(4) == [1.0, 0.75, 0.5, 0.25]


def test_the_rate_rises_first_for_a_number_or_a_share_of_steps() -> None:
    expected = [0.0, 0.5, 1.0, 1.0]
    for warmup in ({"warmup_steps": 2}, {"warmup_ratio": 0.5}):
        assert rates(4, lr_scheduler_type="constant_with_warmup", **warmup) == expected
    both = rates(4, lr_scheduler_type="constant_with_warmup", warmup_steps=1, warmup_ratio=1.0)
    assert both == [0.0, 1.0, 1.0, 1.0]


def test_the_rate_may_be_constant_or_a_cosine() -> None:
    assert rates(3, lr_scheduler_type="constant") == [1.0, 1.0, 1.0]
    cosine = [0.5 * (1 + math.cos(math.pi * step / 4)) for step in range(4)]
    assert rates(4, lr_scheduler_type="cosine") == pytest.approx(cosine)


def test_every_schedule_is_a_function_of_the_step() -> None:
    for name in SCHEDULES:
        kwargs = {"warmup_stable_decay": {"num_decay_steps": 3}}.get(name, {})
        kwargs |= {"min_lr_rate": 0.1} if name.endswith("min_lr") else {}
        options: dict[str, Any] = {"lr_scheduler_type": name, "lr_scheduler_kwargs": kwargs}
        made = rates(8, learning_rate=1e-3, warmup_steps=2, **options)
        assert all(0 <= rate <= 1 for rate in made), name
        assert (made[0] == 1) == (name == "constant")
        assert max(made[2:]) > 0.9, name


def test_a_schedule_reads_its_own_numbers_and_the_rate_it_starts_from() -> None:
    ends = {"lr_end": 5e-4, "power": 1.0}
    made = rates(2, lr_scheduler_type="polynomial", lr_scheduler_kwargs=ends, learning_rate=1e-3)
    assert made == pytest.approx([1.0, 0.75])
    with pytest.raises(UsageError, match=r"'linear' with lr_scheduler_kwargs={'min_lr': 1}"):
        rates(2, lr_scheduler_kwargs={"min_lr": 1})
    with pytest.raises(UsageError, match="'reduce_lr_on_plateau' is refused: it follows a metric"):
        GRPOConfig(lr_scheduler_type="reduce_lr_on_plateau")


def test_a_warmup_below_one_step_is_a_share() -> None:
    expected = [0.0, 0.5, 1.0, 1.0]
    assert rates(4, lr_scheduler_type="constant_with_warmup", warmup_steps=0.5) == expected


def test_an_optimizer_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"optim='adamw_bnb_8bit': choose one of adamw_torch, .*"):
        GRPOConfig(optim="adamw_bnb_8bit")
    made = make_optimizer(nn.Linear(2, 2), GRPOConfig(optim="adafactor", learning_rate=0.5))
    assert made.defaults["relative_step"] is False
    assert made.param_groups[0]["lr"] == 0.5


def test_processes_are_joined_as_configured() -> None:
    options: dict[str, Any] = {"ddp_timeout": 60, "ddp_bucket_cap_mb": 3, "ddp_static_graph": True}
    made = make_accelerator(GRPOConfig(use_cpu=True, **options))
    assert made.device.type == "cpu"
    assert made.init_handler.timeout.total_seconds() == 60
    ddp = made.ddp_handler.to_kwargs()
    assert ddp == {"broadcast_buffers": False, "bucket_cap_mb": 3, "static_graph": True}


def test_the_rate_at_a_step_does_not_depend_on_the_steps_before() -> None:
    factor = rate_schedule(GRPOConfig(lr_scheduler_type="cosine", warmup_steps=3), 10)
    later = factor(7)
    assert [factor(step) for step in range(10)][7] == later


def test_only_matrices_decay_and_only_what_is_trained_is_moved() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3), nn.Linear(3, 2))
    model[2].requires_grad_(False)
    config = SFTConfig(weight_decay=0.1, adam_beta2=0.9, adam_epsilon=1e-6)
    decaying, still = make_optimizer(model, config).param_groups
    assert [p.shape for p in decaying["params"]] == [torch.Size([3, 2])]
    assert (decaying["weight_decay"], still["weight_decay"]) == (0.1, 0.0)
    assert len(still["params"]) == 3
    assert decaying["betas"] == (0.9, 0.9)
    assert decaying["eps"] == 1e-6


def test_defaults_are_those_of_the_field() -> None:
    config = GRPOConfig()
    assert (config.learning_rate, config.beta, config.loss_type) == (1e-6, 0.0, "dapo")
    assert (config.num_generations, config.max_completion_length) == (8, 512)
    assert (config.temperature, config.epsilon, config.top_k) == (1.0, 0.2, 0)
    assert (SFTConfig().learning_rate, SFTConfig().max_length) == (2e-5, 1024)


def test_a_loss_gets_every_option_of_the_configuration() -> None:
    options = loss_options(GRPOConfig(epsilon_high=0.3, vespo_k_neg=1.5, max_completion_length=7))
    assert (options.upper(), options.vespo_k_neg, options.max_completion_length) == (0.3, 1.5, 7)


@pytest.mark.contract(1)
def test_truth_values_of_scale_rewards_are_names_too() -> None:
    assert GRPOConfig(scale_rewards=True).scale_rewards == "group"  # type: ignore[arg-type]
    assert GRPOConfig(scale_rewards=False).scale_rewards == "none"  # type: ignore[arg-type]
