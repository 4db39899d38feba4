"""The learning rate over a run."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from transformers import get_scheduler

from corral.errors import UsageError

if TYPE_CHECKING:
    from corral.training.optimization import OptimizationConfig

SCHEDULES = (
    "linear",
    "cosine",
    "cosine_with_restarts",
    "polynomial",
    "constant",
    "constant_with_warmup",
    "inverse_sqrt",
    "cosine_with_min_lr",
    "cosine_warmup_with_min_lr",
    "warmup_stable_decay",
)
"""transformers' names of the schedules that depend on the step alone."""


def rate_schedule(config: "OptimizationConfig", steps: int) -> Callable[[int], float]:
    """The factor on the learning rate at each of ``steps`` optimiser steps (from 0).

    A pure function of the step, so that a resumed run needs no schedule state.

    Raises:
        UsageError: ``lr_scheduler_kwargs`` are not those of the schedule.
    """
    # Some schedules end at a given rate, so they look at the rate they start from.
    placeholder = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=config.learning_rate)
    try:
        schedule = get_scheduler(
            config.lr_scheduler_type,
            placeholder,
            num_warmup_steps=warmup_steps(config, steps),
            num_training_steps=steps,
            scheduler_specific_kwargs=dict(config.lr_scheduler_kwargs),
        )
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"lr_scheduler_type={config.lr_scheduler_type!r} with lr_scheduler_kwargs="
            f"{config.lr_scheduler_kwargs!r} and learning_rate={config.learning_rate}: {error}"
        ) from error
    return cast(LambdaLR, schedule).lr_lambdas[0]


def warmup_steps(config: "OptimizationConfig", steps: int) -> int:
    """Steps over which the rate rises: a number, or a share of all steps, rounded up."""
    if config.warmup_steps >= 1:
        return int(config.warmup_steps)
    return math.ceil((config.warmup_steps or config.warmup_ratio) * steps)


def check_schedule(name: str) -> str:
    """The name itself.

    Raises:
        UsageError: There is no such schedule, or it looks at more than the step.
    """
    if name in ("reduce_lr_on_plateau", "greedy"):
        raise UsageError(
            f"lr_scheduler_type={name!r} is refused: it follows a metric, and the rate of a step "
            "must not depend on how often a run was interrupted. Use 'cosine' or "
            "'warmup_stable_decay', or change args.learning_rate in a callback."
        )
    if name not in SCHEDULES:
        raise UsageError(f"lr_scheduler_type={name!r}: choose one of {', '.join(SCHEDULES)}.")
    return name
