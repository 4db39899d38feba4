"""The loss of supervised fine-tuning, and the numbers that stand beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import torch
from torch import Tensor

from corral.algorithms import MicroBatch
from corral.records import Sample
from corral.training.learner import Learner
from corral.training.placeholder import PLACEHOLDER


@dataclass(frozen=True, slots=True, kw_only=True)
class TextNumbers:
    """Means over the trained tokens of all processes."""

    loss: float
    entropy: float
    """Of the distributions the tokens are compared with, in nats."""
    mean_token_accuracy: float
    """Share of tokens that were the likeliest."""
    tokens: float
    """Trained tokens."""


def mean_numbers(parts: Sequence[TextNumbers]) -> TextNumbers:
    """The numbers of all parts together."""
    tokens = fsum(part.tokens for part in parts)
    return TextNumbers(
        loss=fsum(part.loss * part.tokens for part in parts) / tokens,
        entropy=fsum(part.entropy * part.tokens for part in parts) / tokens,
        mean_token_accuracy=fsum(part.mean_token_accuracy * part.tokens for part in parts) / tokens,
        tokens=tokens,
    )


class TextLoss:
    """The loss of one step or of one evaluation, summed over its micro-batches.

    Shares of a step add up over micro-batches and processes: everything is divided by the trained
    tokens of the whole.
    """

    def __init__(self, learner: Learner, rows: Sequence[Sample], loss_type: str) -> None:
        self._learner = learner
        self._is_dft = loss_type == "dft"
        self.batches = learner.micro_batches(rows or [PLACEHOLDER])
        self._tokens = learner.sum_of(sum(row.trained_tokens() for row in rows))
        self._divisor = max(self._tokens, 1.0)
        self._sums = torch.zeros(3, dtype=torch.float64, device=learner.device)

    def __call__(self, micro: MicroBatch) -> Tensor:
        """The micro-batch's share of the loss, with gradient."""
        seen = self._learner.score(micro, with_numbers=True)
        assert seen.entropies is not None
        assert seen.is_likeliest is not None
        losses = -seen.logprobs
        if self._is_dft:
            losses = losses * seen.logprobs.detach().exp()
        total = losses.sum()
        parts = (total.detach(), seen.entropies.sum(), seen.is_likeliest.sum())
        self._sums += torch.stack([part.double() for part in parts])
        return total / self._divisor

    def numbers(self) -> TextNumbers:
        """What all micro-batches so far, on all processes, came to."""
        means = (self._learner.summed(self._sums) / self._divisor).tolist()
        loss, entropy, accuracy = means
        return TextNumbers(
            loss=loss, entropy=entropy, mean_token_accuracy=accuracy, tokens=self._tokens
        )
