"""What losses look at: trained tokens laid flat, and the normalisers of the whole step.

Padded and packed layouts both become the same flat tokens with the index of the row each belongs
to, so a loss has one implementation and padding cannot enter it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from corral.records import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBatch:
    """The tokens of one micro-batch, [N], and its rows, [B]. A row is never split over two."""

    logprobs: Tensor
    """[N] under the weights being trained; the gradient flows through these."""
    mask: Tensor
    """[N] bool: which tokens count. What the other tensors hold elsewhere is never used."""
    row: Tensor
    """[N] int64: the row of each token, 0 to B-1."""
    advantages: Tensor
    """[B], or [N] when ``has_token_advantages``."""
    old_logprobs: Tensor | None = None
    """[N] under the weights of the start of the step; None means equal to ``logprobs``."""
    sampling_logprobs: Tensor | None = None
    """[N] as the engine reported them; NaN where it reported none."""
    ref_logprobs: Tensor | None = None
    """[N] under the reference model; needed when beta is not 0."""
    entropies: Tensor | None = None
    """[N] of the next-token distributions."""
    episode_share: Tensor | None = None
    """[B] the row's part of its episode's trained tokens; None means that rows are episodes."""
    row_count: int
    """B; a row may have no token."""
    has_token_advantages: bool = False

    def __post_init__(self) -> None:
        """Check that the shapes fit."""
        tokens = {
            "logprobs": self.logprobs,
            "mask": self.mask,
            "row": self.row,
            "old_logprobs": self.old_logprobs,
            "sampling_logprobs": self.sampling_logprobs,
            "ref_logprobs": self.ref_logprobs,
            "entropies": self.entropies,
            "advantages": self.advantages if self.has_token_advantages else None,
        }
        rows = {
            "advantages": None if self.has_token_advantages else self.advantages,
            "episode_share": self.episode_share,
        }
        count = self.logprobs.shape[0] if self.logprobs.dim() == 1 else -1
        _check_shapes(tokens, (count,), "one entry a token")
        _check_shapes(rows, (self.row_count,), "one entry a row")

    def cleaned(self) -> "TokenBatch":
        """The same batch with harmless values wherever the mask is false.

        ``0 × nan`` is nan, so masking by multiplication would let one unused position poison
        everything; after this, all tensors are finite where they are not used.
        """
        mask = self.mask.bool()

        def clean(values: Tensor | None) -> Tensor | None:
            return None if values is None else torch.where(mask, values, 0.0)

        return replace(
            self,
            mask=mask,
            logprobs=torch.where(mask, self.logprobs, 0.0),
            old_logprobs=_detached(clean(self.old_logprobs)),
            sampling_logprobs=_detached(clean(self.sampling_logprobs)),
            ref_logprobs=_detached(clean(self.ref_logprobs)),
            entropies=clean(self.entropies),
        )

    def row_sum(self, values: Tensor) -> Tensor:
        """[B] sums of a [N] tensor over the masked tokens of each row."""
        kept = torch.where(self.mask, values, 0.0)
        return kept.new_zeros(self.row_count).index_add(0, self.row, kept)

    def row_tokens(self) -> Tensor:
        """[B] how many tokens of each row count."""
        return self.row_sum(torch.ones_like(self.logprobs))

    def row_mean(self, values: Tensor) -> Tensor:
        """[B] means over the masked tokens of each row, 0 for a row without any."""
        return self.row_sum(values) / self.row_tokens().clamp(min=1)

    def token_advantages(self) -> Tensor:
        """[N] the advantage at each token."""
        return self.advantages if self.has_token_advantages else self.advantages[self.row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What losses divide by: counts over the whole optimizer step, all micro-batches and ranks.

    With these fixed, the losses of micro-batches add up to that of the step however it was cut.
    (A trainer whose ranks *average* gradients multiplies the loss by the number of ranks.)
    """

    tokens: float
    """Trained tokens."""
    rows: float
    """Episodes: rows, counted by their share of an episode."""
    entropy_tokens: float | None = None
    """Tokens the entropy bonus looks at; None means all trained tokens."""

    def __add__(self, other: "Totals") -> "Totals":
        """The counts of two parts of a step."""
        both_whole = self.entropy_tokens is None and other.entropy_tokens is None
        return Totals(
            tokens=self.tokens + other.tokens,
            rows=self.rows + other.rows,
            entropy_tokens=None if both_whole else self.bonus_tokens() + other.bonus_tokens(),
        )

    def bonus_tokens(self) -> float:
        """How many tokens the entropy bonus is a mean over."""
        return self.tokens if self.entropy_tokens is None else self.entropy_tokens

    @classmethod
    def of_batch(cls, batch: TokenBatch, *, entropy_threshold: float | None = None) -> "Totals":
        """Count a batch; give the threshold that its loss will be given."""
        mask = batch.mask.bool()
        share = batch.episode_share
        kept = None
        if entropy_threshold is not None and batch.entropies is not None:
            kept = float((mask & (batch.entropies >= entropy_threshold)).sum())
        return cls(
            tokens=float(mask.sum()),
            rows=float(batch.row_count if share is None else share.sum()),
            entropy_tokens=kept,
        )

    @classmethod
    def of_samples(cls, samples: Sequence[Sample]) -> "Totals":
        """Count samples: their trained tokens, and the episodes they come from."""
        return cls(
            tokens=float(sum(sample.trained_tokens() for sample in samples)),
            rows=float(len({sample.episode for sample in samples})),
        )


def episode_shares(samples: Sequence[Sample]) -> list[float]:
    """For each sample its part of the trained tokens of its episode.

    An episode that became several rows (a history was rewritten) would otherwise weigh as much as
    several episodes in losses that average over rows.
    """
    tokens: dict[tuple[int, int], int] = {}
    for sample in samples:
        tokens[sample.episode] = tokens.get(sample.episode, 0) + sample.trained_tokens()
    return [sample.trained_tokens() / max(tokens[sample.episode], 1) for sample in samples]


def trainable(samples: Sequence[Sample], *, drop_truncated: bool = False) -> list[Sample]:
    """The samples that have something to train.

    Dropping a truncated sample here, rather than masking it later, removes it from the loss and
    from everything the loss is divided by.
    """
    return [
        sample
        for sample in samples
        if sample.trained_tokens() > 0 and not (drop_truncated and sample.is_truncated)
    ]


def _detached(values: Tensor | None) -> Tensor | None:
    return None if values is None else values.detach()


def _check_shapes(tensors: dict[str, Tensor | None], shape: tuple[int, ...], meaning: str) -> None:
    for name, tensor in tensors.items():
        if tensor is not None and tuple(tensor.shape) != shape:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}, expected {shape}: {meaning}."
            )
