"""Importance correction: what to do when the engine's probabilities are not the learner's.

An engine with other kernels or older weights samples from a slightly different distribution. The
ratio of the two, limited, is multiplied into the loss. Formulas: TRL 1.16's GRPO trainer
"""

from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor

from corral.algorithms.batch import TokenBatch
from corral.algorithms.metrics import (
    Metric,
    MetricTensor,
    Reduction,
    highest,
    lowest,
    mean_over,
    to_metrics,
)
from corral.errors import UsageError

ROUNDING = 1e-4
"""Differences of logprobs below this are rounding in float32, and count as none.

How the engine rounds depends on which rows it decodes together, and so on how fast tools answer.
Without this, a run's weights would depend on that in their last digits, and no two runs be equal.
"""


class CorrectionMode(StrEnum):
    """What the ratio is taken over, and what happens to one that is out of bounds."""

    TOKEN_TRUNCATE = "token_truncate"
    """One a token, limited to the bounds."""
    TOKEN_MASK = "token_mask"
    """One a token, 0 when out of bounds."""
    SEQUENCE_TRUNCATE = "sequence_truncate"
    """One a row (a product over its tokens), limited to the bounds."""
    SEQUENCE_MASK = "sequence_mask"
    """One a row, 0 when out of bounds: long rows can vanish entirely."""

    def is_per_row(self) -> bool:
        """Whether there is one ratio a row."""
        return self in (CorrectionMode.SEQUENCE_TRUNCATE, CorrectionMode.SEQUENCE_MASK)

    def truncates(self) -> bool:
        """Whether a ratio out of bounds is moved to the bound."""
        return self in (CorrectionMode.TOKEN_TRUNCATE, CorrectionMode.SEQUENCE_TRUNCATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportanceRatio:
    """The limited ratio of the learner's to the engine's probabilities; no gradient."""

    values: Tensor
    """[N], or [B] when ``is_per_row``."""
    is_per_row: bool = False

    def per_token(self, row: Tensor) -> Tensor:
        """[N] the factor of each token's loss."""
        return self.values[row] if self.is_per_row else self.values


def importance_ratio(
    batch: TokenBatch,
    mode: CorrectionMode | str,
    *,
    clip_min: float | None = None,
    clip_max: float | None = 3.0,
) -> ImportanceRatio | None:
    """The correction for a batch, or None when it has no sampling logprobs.

    A token whose logprob the engine did not report (NaN), or whose logprobs differ by less than
    ``ROUNDING``, counts as ratio 1.
    """
    mode = CorrectionMode(mode)
    check_bounds(mode, clip_min=clip_min, clip_max=clip_max)
    difference = _difference(batch)
    if difference is None:
        return None
    difference = torch.where(difference.abs() < ROUNDING, 0.0, difference)
    log_ratio = batch.row_sum(difference) if mode.is_per_row() else difference
    ratio = log_ratio.exp()
    if mode.truncates():
        ratio = ratio.clamp(min=clip_min, max=clip_max)
    else:
        low = -float("inf") if clip_min is None else clip_min
        high = float("inf") if clip_max is None else clip_max
        ratio = torch.where((ratio >= low) & (ratio <= high), ratio, 0.0)
    return ImportanceRatio(values=ratio, is_per_row=mode.is_per_row())


def check_bounds(
    mode: CorrectionMode | str, *, clip_min: float | None, clip_max: float | None
) -> None:
    """Refuse bounds under which the correction does nothing or everything."""
    if clip_min is not None and clip_max is not None and clip_min >= clip_max:
        raise UsageError(
            f"The importance ratio's clip_min {clip_min} is not below its clip_max {clip_max}."
        )
    if CorrectionMode(mode).truncates() and clip_min is None and clip_max is None:
        raise UsageError(
            f"Mode {str(mode)!r} truncates to bounds: give clip_max, clip_min or both."
        )


def correction_metrics(batch: TokenBatch, ratio: ImportanceRatio | None) -> dict[str, Metric]:
    """How far the engine's logprobs are from the learner's, and what the correction made of it."""
    difference = _difference(batch)
    if difference is None or batch.sampling_logprobs is None:
        return {}
    mask = batch.mask.bool()
    missing = (mask & batch.sampling_logprobs.isnan()).sum()
    metrics = {
        "sampling/sampling_logp_difference/mean": mean_over(difference.abs(), mask),
        "sampling/sampling_logp_difference/max": highest(difference.abs(), mask),
        "sampling/missing_logprobs": MetricTensor(
            reduction=Reduction.SUM, value=missing.to(difference.dtype), weight=missing
        ),
    }
    if ratio is not None:
        present = torch.ones_like(ratio.values, dtype=torch.bool) if ratio.is_per_row else mask
        metrics |= {
            "sampling/importance_sampling_ratio/min": lowest(ratio.values, present),
            "sampling/importance_sampling_ratio/mean": mean_over(ratio.values, present),
            "sampling/importance_sampling_ratio/max": highest(ratio.values, present),
        }
    return to_metrics(metrics)


def _difference(batch: TokenBatch) -> Tensor | None:
    if batch.sampling_logprobs is None:
        return None
    old = batch.logprobs if batch.old_logprobs is None else batch.old_logprobs
    difference = old.detach() - batch.sampling_logprobs.detach()
    usable = batch.mask.bool() & ~difference.isnan()
    return torch.where(usable, difference, 0.0)
