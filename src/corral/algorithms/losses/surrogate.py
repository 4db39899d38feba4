"""The clipped surrogate: grpo, bnpo, dr_grpo, dapo and luspo differ only in what divides it."""

import torch

from corral.algorithms.losses.inputs import Term, TermInputs
from corral.algorithms.metrics import MetricTensor, highest, lowest


def clipped_surrogate(inputs: TermInputs) -> Term:
    """``−min(min(ρ, δ)·A, clip(ρ, 1−ε, 1+ε_high)·A)``; the cap δ only if ``delta`` is set.

    Source: PPO's clipped objective as in TRL 1.16's GRPO trainer; δ: two-sided clipping
    (INTELLECT-2), ε_high: clip-higher (DAPO).
    """
    options = inputs.options
    low, high = 1.0 - options.epsilon, 1.0 + options.upper()
    capped = inputs.ratio if options.delta is None else inputs.ratio.clamp(max=options.delta)
    values = -torch.minimum(
        capped * inputs.advantages, inputs.ratio.clamp(low, high) * inputs.advantages
    )
    return Term(values=values, metrics=_clip_metrics(inputs, low=low, high=high))


def _clip_metrics(inputs: TermInputs, *, low: float, high: float) -> dict[str, MetricTensor]:
    is_low = (inputs.ratio < low) & (inputs.advantages < 0)
    is_high = (inputs.ratio > high) & (inputs.advantages > 0)
    batch = inputs.batch
    has_tokens = batch.row_tokens() > 0
    dtype = inputs.ratio.dtype
    return {
        "clip_ratio/low_mean": inputs.share_of_tokens(is_low),
        "clip_ratio/high_mean": inputs.share_of_tokens(is_high),
        "clip_ratio/region_mean": inputs.share_of_tokens(is_low | is_high),
        "clip_ratio/low_min": lowest(batch.row_mean(is_low.to(dtype)), has_tokens),
        "clip_ratio/high_max": highest(batch.row_mean(is_high.to(dtype)), has_tokens),
    }
