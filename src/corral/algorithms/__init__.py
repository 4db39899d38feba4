"""Algorithms as pure functions: advantages, losses, importance correction, packing, logprobs.

An algorithm is an advantage function and a loss by name with its options. The flow of one
optimizer step::

    samples = trainable(samples, drop_truncated=...)
    totals, shares = Totals.of_samples(samples), episode_shares(samples)
    parts = []
    for indices in cut([len(s.ids) for s in samples], token_budget, packing=True):
        micro = collate(samples, indices, packing=True, episode_shares=shares)
        scored = token_logprobs(model, micro, temperature=1.0)
        batch = micro.token_batch(scored.logprobs)
        result = policy_loss("dapo", batch, LossOptions(), totals)
        result.loss.backward()
        parts.append(result.metrics)
    metrics = finish_metrics(combine_metrics(parts))
"""

from corral.algorithms.advantages import Advantages, Aggregation, Scale, group_advantages
from corral.algorithms.batch import TokenBatch, Totals, episode_shares, trainable
from corral.algorithms.correction import (
    CorrectionMode,
    ImportanceRatio,
    check_bounds,
    correction_metrics,
    importance_ratio,
)
from corral.algorithms.logprobs import TokenLogprobs, token_logprobs
from corral.algorithms.metrics import Metric, Reduction, combine_metrics, finish_metrics
from corral.algorithms.options import LossOptions, RatioLevel
from corral.algorithms.output_head import keeps_packed_rows_apart
from corral.algorithms.packing import MicroBatch, collate, cut
from corral.algorithms.policy import BONUS_ENTROPY, LossResult, policy_loss
from corral.algorithms.registry import LOSSES, LossKind, find_loss
from corral.algorithms.routing import Routing, balance_loss
from corral.algorithms.selection import entropy_threshold

__all__ = [
    "BONUS_ENTROPY",
    "LOSSES",
    "Advantages",
    "Aggregation",
    "CorrectionMode",
    "ImportanceRatio",
    "LossKind",
    "LossOptions",
    "LossResult",
    "Metric",
    "MicroBatch",
    "RatioLevel",
    "Reduction",
    "Routing",
    "Scale",
    "TokenBatch",
    "TokenLogprobs",
    "Totals",
    "balance_loss",
    "check_bounds",
    "collate",
    "combine_metrics",
    "correction_metrics",
    "cut",
    "entropy_threshold",
    "episode_shares",
    "find_loss",
    "finish_metrics",
    "group_advantages",
    "importance_ratio",
    "keeps_packed_rows_apart",
    "policy_loss",
    "token_logprobs",
    "trainable",
]
