"""What every per-token term is given, and what it returns."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from corral.algorithms.batch import TokenBatch
from corral.algorithms.correction import ImportanceRatio
from corral.algorithms.metrics import MetricTensor, mean_over
from corral.algorithms.options import LossOptions

LARGEST_LOG_RATIO = 60.0
"""Where the log ratio stops growing: exp of more is infinite in float32, and the zero gradient of
a clipped term times infinity is nan. A run that gets here is long past saving by this number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TermInputs:
    """A cleaned batch with the quantities that most terms need."""

    batch: TokenBatch
    options: LossOptions
    log_ratio: Tensor
    """[N] log probability now minus at the start of the step, at each token."""
    ratio: Tensor
    """[N] the policy ratio at the level the options ask for."""
    advantages: Tensor
    """[N]."""
    importance: ImportanceRatio | None

    def share_of_tokens(self, flags: Tensor) -> MetricTensor:
        """The share of true [N] flags: of tokens, or of rows when the ratio is one a row."""
        values = flags.to(self.ratio.dtype)
        if self.options.is_sequence_level():
            per_row = self.batch.row_mean(values)
            return mean_over(per_row, torch.ones_like(per_row, dtype=torch.bool))
        return mean_over(values, self.batch.mask)


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """The loss at each token, [N], before masks and normalisers."""

    values: Tensor
    metrics: dict[str, MetricTensor] = field(default_factory=dict[str, MetricTensor])


TokenTerm = Callable[[TermInputs], Term]


def term_inputs(
    batch: TokenBatch, options: LossOptions, importance: ImportanceRatio | None
) -> TermInputs:
    """Prepare a cleaned batch for a term.

    The ratio is ``exp(d)`` at token level and ``exp(Σ d / max(tokens, 1))`` at sequence level, with
    ``d = logprob − old logprob`` (TRL 1.16's GRPO trainer; sequence level: GSPO).
    """
    old = batch.logprobs.detach() if batch.old_logprobs is None else batch.old_logprobs
    log_ratio = batch.logprobs - old
    level = batch.row_mean(log_ratio)[batch.row] if options.is_sequence_level() else log_ratio
    return TermInputs(
        batch=batch,
        options=options,
        log_ratio=log_ratio,
        ratio=level.clamp(max=LARGEST_LOG_RATIO).exp(),
        advantages=batch.token_advantages(),
        importance=importance,
    )
