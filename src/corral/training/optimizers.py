"""The optimisers that ``optim`` names, over the trainable parameters of a model."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim import SGD, Adagrad, AdamW, Optimizer, RMSprop
from transformers import Adafactor

from corral.errors import UsageError

if TYPE_CHECKING:
    from corral.training.optimization import OptimizationConfig

_Groups = list[dict[str, Any]]


def make_optimizer(model: nn.Module, config: "OptimizationConfig") -> Optimizer:
    """The configured optimiser; weight decay on matrices only."""
    trainable = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trainable if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in trainable if p.ndim < 2], "weight_decay": 0.0},
    ]
    return OPTIMIZERS[config.optim]([group for group in groups if group["params"]], config)


def check_optimizer(name: str) -> str:
    """The name itself.

    Raises:
        UsageError: Corral has no optimiser of that name.
    """
    if name not in OPTIMIZERS:
        raise UsageError(
            f"optim={name!r}: choose one of {', '.join(OPTIMIZERS)}, or pass the optimiser itself "
            "to the trainer: optimizers=(optimizer, None)."
        )
    return name


def _adamw(groups: _Groups, config: "OptimizationConfig", **options: Any) -> Optimizer:
    betas = (config.adam_beta1, config.adam_beta2)
    return AdamW(groups, lr=config.learning_rate, betas=betas, eps=config.adam_epsilon, **options)


def _fused_adamw(groups: _Groups, config: "OptimizationConfig") -> Optimizer:
    return _adamw(groups, config, fused=True)


def _adafactor(groups: _Groups, config: "OptimizationConfig") -> Optimizer:
    # Its own step sizes would ignore learning_rate and the schedule.
    options = {"scale_parameter": False, "relative_step": False}
    return Adafactor(groups, lr=config.learning_rate, **options)


def _sgd(groups: _Groups, config: "OptimizationConfig") -> Optimizer:
    return SGD(groups, lr=config.learning_rate)


def _adagrad(groups: _Groups, config: "OptimizationConfig") -> Optimizer:
    return Adagrad(groups, lr=config.learning_rate)


def _rmsprop(groups: _Groups, config: "OptimizationConfig") -> Optimizer:
    return RMSprop(groups, lr=config.learning_rate)


OPTIMIZERS: Mapping[str, Callable[[_Groups, "OptimizationConfig"], torch.optim.Optimizer]] = {
    "adamw_torch": _adamw,
    "adamw_torch_fused": _fused_adamw,
    "adafactor": _adafactor,
    "sgd": _sgd,
    "adagrad": _adagrad,
    "rmsprop": _rmsprop,
}
"""By transformers' name, with the options that transformers gives them."""
