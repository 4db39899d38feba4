"""The weight of the entropy bonus, moved with the entropy: up while it is low, down while not.

The controller of Skywork-OR1 (He et al., 2025) as TRL 1.16 has it.
"""

import math

import torch
from torch import Tensor

from corral.training.grpo_config import GRPOConfig


class EntropyControl:
    """One weight, moved by a constant after each optimiser step."""

    def __init__(self, config: GRPOConfig) -> None:
        self._config = config
        self.tensors: dict[str, Tensor] = {
            "weight": torch.tensor(config.entropy_coef, dtype=torch.float64),
            "entropy": torch.tensor(math.inf, dtype=torch.float64),
        }
        """Its memory, which a checkpoint holds."""

    @property
    def weight(self) -> float:
        """Where the weight is."""
        return float(self.tensors["weight"])

    def applied(self) -> float:
        """What the bonus of the next step is multiplied by: 0 while entropy is above its target.

        Nothing is known before the first step, so that one has no bonus.
        """
        is_low = float(self.tensors["entropy"]) <= self._config.entropy_target
        return self.weight if is_low else 0.0

    def saw(self, entropy: float) -> None:
        """Take the mean entropy (nats a token) of the tokens that a step's bonus acts on."""
        config = self._config
        if entropy <= config.entropy_target:
            weight = min(self.weight + config.entropy_coef_delta, config.entropy_coef_max)
        else:
            weight = max(self.weight - config.entropy_coef_delta, config.entropy_coef_min)
        self.tensors["weight"].fill_(weight)
        self.tensors["entropy"].fill_(entropy)
