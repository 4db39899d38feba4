"""From logits to token ids, all rows at once, with the logprob of what was drawn."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

# The vocabulary is searched in two steps, block then token; 128 divides most vocabularies.
_BLOCK = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSampling:
    """How each row of a batch is sampled: arrays with one entry per row."""

    temperature: np.ndarray
    top_p: np.ndarray
    top_k: np.ndarray
    min_p: np.ndarray
    repetition_penalty: np.ndarray

    def is_filtered(self) -> np.ndarray:
        """Which rows keep only a part of the vocabulary."""
        has_filter = (self.top_p < 1) | (self.top_k > 0) | (self.min_p > 0)
        return has_filter & (self.temperature > 0)


def sample_rows(
    logits: Tensor, rows: RowSampling, uniforms: np.ndarray, history: list[Tensor] | None
) -> tuple[Tensor, Tensor]:
    """Return the sampled ids [rows] and their logprobs [rows].

    Args:
        logits: [rows, vocabulary], any float dtype; not changed.
        uniforms: One number in [0, 1) per row.
        history: For each row the ids so far; needed only if a row has a repetition penalty.
    """
    device = logits.device
    raw = logits.float()
    scores = raw
    if history is not None:
        scores = penalise(raw, rows.repetition_penalty, history)
    is_greedy = rows.temperature == 0
    greedy = torch.from_numpy(np.flatnonzero(is_greedy)).to(device)
    if len(greedy) == len(is_greedy):
        return _greedy(scores, raw)

    temperature = np.where(is_greedy, 1.0, rows.temperature)
    if (temperature != 1).any():
        scores = scores / torch.from_numpy(temperature).to(device, torch.float32)[:, None]
    filtered = np.flatnonzero(rows.is_filtered())
    if len(filtered):
        scores = scores.clone() if scores is raw else scores
        index = torch.from_numpy(filtered).to(device)
        scores[index] = keep_likely(
            scores[index],
            top_p=rows.top_p[filtered],
            top_k=rows.top_k[filtered],
            min_p=rows.min_p[filtered],
        )
    tokens, logprobs = draw(scores, torch.from_numpy(uniforms).to(device))
    if len(greedy):
        tokens[greedy], logprobs[greedy] = _greedy(scores[greedy], raw[greedy])
    return tokens, logprobs


def draw(scores: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Draw from softmax(scores) by inverting its cumulative sum at ``uniforms``.

    A token of probability 0 is never drawn. The search is by blocks of the vocabulary, so that
    only the sum over blocks and one block per row are accumulated, in float64.
    """
    rows, vocabulary = scores.shape
    peak = scores.amax(-1, keepdim=True)
    weights = (scores - peak).exp_()
    if padding := -vocabulary % _BLOCK:
        weights = torch.nn.functional.pad(weights, (0, padding))
    weights = weights.view(rows, -1, _BLOCK)
    blocks = weights.sum(-1).double().cumsum_(-1)
    total = blocks[:, -1]
    block, rest = _invert(blocks, uniforms)
    inside = weights[torch.arange(rows, device=scores.device), block].double().cumsum_(-1)
    token, _ = _invert(inside, rest)
    tokens = block * _BLOCK + token
    chosen = scores.gather(-1, tokens[:, None])[:, 0] - peak[:, 0]
    return tokens, chosen - total.log().float()


def _invert(cumulative: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Find the step of ``cumulative`` where that share of the total falls, and how far into it."""
    target = uniforms * cumulative[:, -1]
    # right=True finds the first entry above the target, so a step of height 0 is skipped.
    index = torch.searchsorted(cumulative, target[:, None], right=True)
    index.clamp_(max=cumulative.shape[-1] - 1)
    end = cumulative.gather(-1, index)[:, 0]
    start = torch.where(index > 0, cumulative.gather(-1, (index - 1).clamp(min=0)), 0.0)[:, 0]
    rest = ((target - start) / (end - start)).clamp_(0.0, 1 - 2.0**-48)
    return index[:, 0], rest


def keep_likely(
    scores: Tensor, *, top_p: np.ndarray, top_k: np.ndarray, min_p: np.ndarray
) -> Tensor:
    """Set what top-k, then top-p, then min-p remove to -inf; the best token always stays."""
    device = scores.device
    ordered, order = scores.sort(-1, descending=True)
    ranks = torch.arange(scores.shape[-1], device=device)
    limit = torch.from_numpy(np.where(top_k > 0, top_k, scores.shape[-1])).to(device)
    ordered = ordered.masked_fill(ranks >= limit[:, None], -torch.inf)

    probabilities = ordered.softmax(-1, dtype=torch.float64)
    before = probabilities.cumsum(-1) - probabilities
    nucleus = torch.from_numpy(top_p).to(device)[:, None]
    removed = (before >= nucleus) & (nucleus < 1)
    floor = torch.from_numpy(min_p).to(device)[:, None]
    removed |= probabilities < floor * probabilities[:, :1]
    removed[:, 0] = False
    ordered = ordered.masked_fill(removed, -torch.inf)
    return torch.full_like(scores, -torch.inf).scatter_(-1, order, ordered)


def penalise(scores: Tensor, penalty: np.ndarray, history: list[Tensor]) -> Tensor:
    """Return scores where ids already in the row are less likely (penalty above 1)."""
    scores = scores.clone()
    for row in np.flatnonzero(penalty != 1):
        ids = history[row].to(scores.device)
        seen = scores[row, ids]
        factor = float(penalty[row])
        scores[row, ids] = torch.where(seen < 0, seen * factor, seen / factor)
    return scores


def _greedy(scores: Tensor, raw: Tensor) -> tuple[Tensor, Tensor]:
    """Return the best ids, and their logprobs in the distribution nothing was done to."""
    tokens = scores.argmax(-1)
    chosen = raw.gather(-1, tokens[:, None])[:, 0]
    return tokens, chosen - raw.logsumexp(-1)
