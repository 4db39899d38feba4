"""What every trainer needs to know about optimising, and the optimiser and schedule they share."""

from collections.abc import Callable
from typing import Literal, cast

import torch
from pydantic import Field, field_validator
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from transformers import get_scheduler

from corral.training.configuration import Configuration, JsonObject

Schedule = Literal["constant", "constant_with_warmup", "linear", "cosine"]


class OptimizationConfig(Configuration):
    """Fields shared by all trainers. Names and defaults are TRL's where TRL has them."""

    output_dir: str | None = None
    """The run folder. None: ``runs/<model>-<method>``."""
    model_init_kwargs: JsonObject = Field(default_factory=dict)
    """Passed to ``from_pretrained`` when the model is given as text."""
    seed: int = 42
    """Every random choice of the run derives from it."""
    max_steps: int = -1
    """Optimiser steps; -1: as many as ``num_train_epochs`` give."""
    num_train_epochs: float = Field(default=3.0, gt=0)
    """Passes over the data; used when ``max_steps`` is -1."""
    per_device_train_batch_size: int = Field(default=8, ge=1)
    """Rows per process and accumulation step."""
    gradient_accumulation_steps: int = Field(default=1, ge=1)
    """Accumulation steps per optimiser step."""
    learning_rate: float = Field(default=1e-6, ge=0)
    """Peak learning rate."""
    lr_scheduler_type: Schedule = "linear"
    """Shape of the learning rate over the run."""
    warmup_steps: int = Field(default=0, ge=0)
    """Steps over which the learning rate rises from 0; overrides ``warmup_ratio`` when above 0."""
    warmup_ratio: float = Field(default=0.0, ge=0, le=1)
    """Share of all steps over which the learning rate rises from 0."""
    weight_decay: float = Field(default=0.0, ge=0)
    """AdamW's decoupled weight decay; not applied to vectors (norms, biases)."""
    adam_beta1: float = Field(default=0.9, ge=0, lt=1)
    """AdamW's first-moment decay."""
    adam_beta2: float = Field(default=0.999, ge=0, lt=1)
    """AdamW's second-moment decay."""
    adam_epsilon: float = Field(default=1e-8, gt=0)
    """AdamW's denominator floor."""
    max_grad_norm: float = Field(default=1.0, ge=0)
    """Gradients are scaled down to this norm; 0: never."""
    trained_blocks: int | None = Field(default=None, ge=1)
    """Train only the last so many transformer blocks and freeze the rest; None: train all."""
    bf16: bool | None = None
    """Mixed precision. None: on for GPUs, off for CPUs (where it is slower and coarser)."""
    gradient_checkpointing: bool | None = None
    """Recompute activations in the backward pass. None: on for GPUs, off for CPUs."""
    token_budget: int | None = Field(default=None, ge=1)
    """Most tokens of one micro-batch; the gradient does not depend on it. None: 8192 on GPUs, 2048
    on CPUs (whose caches hold no more)."""
    packing: bool = False
    """Lay several rows behind each other in one sequence instead of padding them."""
    logits_chunk_tokens: int = Field(default=1024, ge=1)
    """Trained tokens whose logits exist at the same time."""
    save_strategy: Literal["no", "steps", "epoch"] = "steps"
    """When to write checkpoints besides the last one; "no": never, nor at the end."""
    save_steps: int = Field(default=0, ge=0)
    """Steps between checkpoints; 0: only at the end."""
    save_total_limit: int | None = Field(default=2, ge=1)
    """Newest checkpoints to keep; None: all."""

    @field_validator("max_steps")
    @classmethod
    def _steps_are_positive_or_derived(cls, value: int) -> int:
        if value == 0 or value < -1:
            raise ValueError(f"max_steps={value}: give a positive number, or -1 to use epochs.")
        return value


def make_optimizer(model: nn.Module, config: OptimizationConfig) -> torch.optim.AdamW:
    """AdamW over the trainable parameters, weight decay on matrices only."""
    trainable = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trainable if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in trainable if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=config.learning_rate,
        betas=(config.adam_beta1, config.adam_beta2),
        eps=config.adam_epsilon,
    )


def rate_schedule(config: OptimizationConfig, steps: int) -> Callable[[int], float]:
    """The factor on the learning rate at each of ``steps`` optimiser steps (from 0).

    A pure function of the step, so that a resumed run needs no schedule state.
    """
    warmup = config.warmup_steps or round(config.warmup_ratio * steps)
    placeholder = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = get_scheduler(
        config.lr_scheduler_type, placeholder, num_warmup_steps=warmup, num_training_steps=steps
    )
    return cast(LambdaLR, schedule).lr_lambdas[0]
