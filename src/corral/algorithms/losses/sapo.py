"""SAPO: a smooth gate on the ratio in place of the hard clip."""

import torch

from corral.algorithms.losses.inputs import Term, TermInputs


def soft_gate(inputs: TermInputs) -> Term:
    """``−(4/τ)·σ(τ(ρ−1))·A`` with τ by the sign of the advantage.

    Source: Soft Adaptive Policy Optimization as in TRL 1.16's GRPO trainer
    """
    options = inputs.options
    temperature = torch.where(
        inputs.advantages > 0, options.sapo_temperature_pos, options.sapo_temperature_neg
    ).to(inputs.ratio.dtype)
    gate = torch.sigmoid(temperature * (inputs.ratio - 1.0)) * 4.0 / temperature
    return Term(values=-gate * inputs.advantages)
