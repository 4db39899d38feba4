"""VESPO: a policy gradient weighted by a smooth function of the whole row's ratio."""

import math

import torch
from torch import Tensor

from corral.algorithms.losses.inputs import Term, TermInputs
from corral.algorithms.metrics import mean_over
from corral.algorithms.options import LossOptions

LARGEST_LOG_WEIGHT = 20.0
SMALLEST_LOG_WEIGHT = math.log(1e-8)


def weighted_policy_gradient(inputs: TermInputs) -> Term:
    """``−φ·A·logprob`` with ``φ = exp(λ + k·log w − λ·w)``, no gradient through φ.

    ``log w`` is the row's sum of log ratios (each within ±20) plus the log importance ratios,
    within [ln 1e-8, 20]; (k, λ) go by the sign of the advantage. The importance ratio is used here
    and not multiplied into the loss. Source: VESPO as in TRL 1.16's GRPO trainer
    """
    batch, options = inputs.batch, inputs.options
    log_weight = _row_log_weight(inputs)
    phi = _phi(inputs.advantages, log_weight[batch.row], options)
    if batch.has_token_advantages:
        phi_rows = batch.row_mean(phi)
    else:
        phi_rows = _phi(batch.advantages, log_weight, options)
    return Term(
        values=-phi * inputs.advantages * batch.logprobs,
        metrics={
            "vespo/phi_seq_mean": mean_over(phi_rows, torch.ones_like(phi_rows, dtype=torch.bool))
        },
    )


def _row_log_weight(inputs: TermInputs) -> Tensor:
    log_ratio = inputs.log_ratio.detach().clamp(-LARGEST_LOG_WEIGHT, LARGEST_LOG_WEIGHT)
    log_weight = inputs.batch.row_sum(log_ratio)
    if inputs.importance is not None:
        log_importance = inputs.importance.values.log()
        log_importance = log_importance.clamp(SMALLEST_LOG_WEIGHT, LARGEST_LOG_WEIGHT)
        if not inputs.importance.is_per_row:
            log_importance = inputs.batch.row_sum(log_importance)
        log_weight = log_weight + log_importance
    return log_weight.clamp(SMALLEST_LOG_WEIGHT, LARGEST_LOG_WEIGHT)


def _phi(advantages: Tensor, log_weight: Tensor, options: LossOptions) -> Tensor:
    is_good = advantages >= 0
    dtype = log_weight.dtype
    power = torch.where(is_good, options.vespo_k_pos, options.vespo_k_neg).to(dtype)
    decay = torch.where(is_good, options.vespo_lambda_pos, options.vespo_lambda_neg).to(dtype)
    phi = (decay + power * log_weight - decay * log_weight.exp()).exp()
    return phi.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
