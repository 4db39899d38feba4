"""What the masked per-token losses are summed into, and divided by.

Every normaliser divides by counts of the whole optimizer step, so micro-batches add up. Where the
reference divides each micro-batch by its own size and averages (bnpo), or estimates the step's
tokens from the generation batch (dapo), these are the exact step-wide versions; with one
micro-batch a step the two agree. Formulas: TRL 1.16's GRPO trainer
"""

from collections.abc import Callable

import torch
from torch import Tensor

from corral.algorithms.batch import TokenBatch, Totals
from corral.algorithms.options import LossOptions

Normaliser = Callable[[Tensor, TokenBatch, Totals, LossOptions], Tensor]


def mean_of_row_means(
    values: Tensor, batch: TokenBatch, totals: Totals, options: LossOptions
) -> Tensor:
    """``Σ_rows (Σ l / max(row tokens, 1)) / rows``: each episode weighs the same (grpo, sapo)."""
    means = batch.row_mean(values)
    if batch.episode_share is not None:
        means = means * batch.episode_share
    return means.sum() / max(totals.rows, 1.0)


def mean_of_tokens(
    values: Tensor, batch: TokenBatch, totals: Totals, options: LossOptions
) -> Tensor:
    """``Σ l / tokens``: each token weighs the same (bnpo, dapo, cispo, vespo)."""
    return _sum(values, batch) / max(totals.tokens, 1.0)


def constant_length(
    values: Tensor, batch: TokenBatch, totals: Totals, options: LossOptions
) -> Tensor:
    """``Σ l / (rows · max_completion_length)``: no bias by length (dr_grpo)."""
    return _sum(values, batch) / (max(totals.rows, 1.0) * options.max_completion_length)


def mean_of_row_sums(
    values: Tensor, batch: TokenBatch, totals: Totals, options: LossOptions
) -> Tensor:
    """``Σ l / rows``: long episodes weigh more (luspo)."""
    return _sum(values, batch) / max(totals.rows, 1.0)


def _sum(values: Tensor, batch: TokenBatch) -> Tensor:
    return torch.where(batch.mask, values, 0.0).sum()
