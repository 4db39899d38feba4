"""Which tokens and rows a loss looks at beyond its mask. Formulas: TRL 1.16's GRPO trainer"""

import torch
from torch import Tensor

from corral.algorithms.batch import TokenBatch


def entropy_threshold(entropies: Tensor, mask: Tensor, top_quantile: float) -> float | None:
    """The entropy from which on a token is among the top share of the whole step.

    Give it all trained tokens of the step (and of all ranks); computed on a micro-batch, the tokens
    that are trained would depend on the cut. None when nothing is left out.
    """
    if top_quantile >= 1.0:
        return None
    values = entropies.detach()[mask.bool()]
    if values.numel() == 0:
        return None
    # By sorting: torch.quantile refuses more than 16 million values.
    ordered = values.sort().values
    place = (1.0 - top_quantile) * (ordered.numel() - 1)
    below = int(place)
    above = min(below + 1, ordered.numel() - 1)
    return float(torch.lerp(ordered[below], ordered[above], place - below))


def is_high_entropy(batch: TokenBatch, threshold: float | None) -> Tensor:
    """[N] which masked tokens reach the threshold; all of them when there is none."""
    if threshold is None:
        return batch.mask
    if batch.entropies is None:
        raise ValueError("An entropy threshold needs the batch's entropies.")
    return batch.mask & (batch.entropies.detach() >= threshold)


def is_on_policy(batch: TokenBatch, threshold: float) -> Tensor:
    """[N] whether the token's advantage is not negative or its row drifted at most ``threshold``.

    Drift is the row's mean of ``sampling logprob − logprob``; the old logprobs stand in where the
    engine reported none.
    """
    reference = batch.sampling_logprobs
    if reference is None:
        reference = batch.old_logprobs
    if reference is None:
        return torch.ones_like(batch.mask)
    drift = (reference - batch.logprobs.detach()).nan_to_num(nan=0.0)
    return (batch.token_advantages() >= 0) | (batch.row_mean(drift) <= threshold)[batch.row]
