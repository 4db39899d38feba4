"""The policy loss of one micro-batch: term, masks, importance, KL, normaliser, entropy bonus."""

from dataclasses import dataclass

import torch
from torch import Tensor

from corral.algorithms.batch import TokenBatch, Totals
from corral.algorithms.correction import ImportanceRatio
from corral.algorithms.losses.inputs import LARGEST_LOG_RATIO, TermInputs, term_inputs
from corral.algorithms.metrics import Metric, MetricTensor, Reduction, mean_over, to_metrics
from corral.algorithms.options import LossOptions
from corral.algorithms.registry import find_loss
from corral.algorithms.selection import is_high_entropy, is_on_policy

BONUS_ENTROPY = "entropy/bonus"
"""The metric that an adaptive bonus is moved by: the mean entropy of the tokens it acts on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossResult:
    """A micro-batch's part of the step's loss, and its part of the metrics."""

    loss: Tensor
    """Scalar; the parts of all micro-batches sum to the loss of the step."""
    metrics: dict[str, Metric]


def policy_loss(
    name: str,
    batch: TokenBatch,
    options: LossOptions,
    totals: Totals,
    *,
    entropy_threshold: float | None = None,
    importance_ratio: ImportanceRatio | None = None,
) -> LossResult:
    """The loss called ``name`` on one micro-batch of a step.

    In this order: the term × off-policy mask × entropy mask × importance ratio (vespo uses it
    within its term) + β·KL, masked, summed and divided as the loss prescribes; then the entropy
    bonus. Masks do not shrink what is divided by. Source: TRL 1.16's GRPO trainer

    Args:
        totals: Counts of the whole optimizer step, from ``Totals``.
        entropy_threshold: From ``selection.entropy_threshold`` over the whole step.
        importance_ratio: From ``correction.importance_ratio`` on the same batch.
    """
    kind = find_loss(name)
    batch = batch.cleaned()
    inputs = term_inputs(batch, options, _cleaned(importance_ratio, batch))
    term = kind.term(inputs)
    values, metrics = term.values, dict(term.metrics)
    is_kept = is_high_entropy(batch, entropy_threshold)
    is_trained = is_kept
    if options.off_policy_mask_threshold is not None:
        is_trained = is_trained & is_on_policy(batch, options.off_policy_mask_threshold)
    values = torch.where(is_trained, values, 0.0)
    if inputs.importance is not None and kind.multiplies_importance:
        values = values * inputs.importance.per_token(batch.row)
    if options.beta != 0.0:
        divergence = _kl(inputs)
        values = values + options.beta * divergence
        metrics["kl"] = mean_over(divergence, batch.mask)
    loss = kind.normalise(values, batch, totals, options)
    if batch.entropies is not None:
        metrics["entropy"] = mean_over(batch.entropies, batch.mask)
    if options.entropy_coef != 0.0 or options.use_adaptive_entropy:
        bonus = _bonus(batch, is_kept, totals)
        metrics["policy_loss"] = _part(loss, batch)
        if options.use_adaptive_entropy:
            metrics[BONUS_ENTROPY] = _part(bonus, batch)
        loss = loss - options.entropy_coef * bonus
    return LossResult(loss=loss, metrics=to_metrics(metrics))


def _part(value: Tensor, batch: TokenBatch) -> MetricTensor:
    """A number that adds up to that of the step."""
    return MetricTensor(reduction=Reduction.SUM, value=value.detach(), weight=batch.mask.sum())


def _kl(inputs: TermInputs) -> Tensor:
    """[N] ``exp(q) − q − 1`` with ``q = reference − logprob``, × ratio if bias-corrected (k3)."""
    batch = inputs.batch
    if batch.ref_logprobs is None:
        raise ValueError(f"beta is {inputs.options.beta}, but the batch has no ref_logprobs.")
    gap = batch.ref_logprobs - batch.logprobs
    divergence = gap.clamp(max=LARGEST_LOG_RATIO).exp() - gap - 1.0
    return divergence * inputs.ratio if inputs.options.use_bias_correction_kl else divergence


def _bonus(batch: TokenBatch, is_kept: Tensor, totals: Totals) -> Tensor:
    if batch.entropies is None:
        raise ValueError("An entropy bonus needs the batch's entropies.")
    return torch.where(is_kept, batch.entropies, 0.0).sum() / max(totals.bonus_tokens(), 1.0)


def _cleaned(importance: ImportanceRatio | None, batch: TokenBatch) -> ImportanceRatio | None:
    if importance is None or importance.is_per_row:
        return importance
    values = torch.where(batch.mask, importance.values.detach(), 1.0)
    return ImportanceRatio(values=values, is_per_row=False)
