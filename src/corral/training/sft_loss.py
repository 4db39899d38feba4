"""The loss of supervised fine-tuning, and the numbers that stand beside it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum

import torch
from torch import Tensor

from corral.algorithms import MicroBatch
from corral.records import Sample
from corral.training.expert_balance import ExpertBalance, StepBalance
from corral.training.learner import Learner
from corral.training.placeholder import PLACEHOLDER


@dataclass(frozen=True, slots=True, kw_only=True)
class TextNumbers:
    """Means over the trained tokens of all processes."""

    loss: float
    """What is trained: the balance loss of experts is in it."""
    aux_loss: float
    """The balance loss of experts, not weighed; 0 where a model has none."""
    entropy: float
    """Of the distributions the tokens are compared with, in nats."""
    mean_token_accuracy: float
    """Share of tokens that were the likeliest."""
    tokens: float
    """Trained tokens."""


def mean_numbers(parts: Sequence[TextNumbers]) -> TextNumbers:
    """The numbers of all parts together."""
    tokens = fsum(part.tokens for part in parts)

    def mean(values: Iterable[float]) -> float:
        weighed = zip(values, parts, strict=True)
        return fsum(value * part.tokens for value, part in weighed) / tokens

    return TextNumbers(
        loss=mean(part.loss for part in parts),
        aux_loss=mean(part.aux_loss for part in parts),
        entropy=mean(part.entropy for part in parts),
        mean_token_accuracy=mean(part.mean_token_accuracy for part in parts),
        tokens=tokens,
    )


class TextLoss:
    """The loss of one step or of one evaluation, summed over its micro-batches.

    Shares of a step add up over micro-batches and processes: everything is divided by the trained
    tokens of the whole.
    """

    def __init__(
        self,
        learner: Learner,
        rows: Sequence[Sample],
        loss_type: str,
        balance: ExpertBalance | None = None,
    ) -> None:
        self._learner = learner
        self._is_dft = loss_type == "dft"
        self.batches = learner.micro_batches(rows or [PLACEHOLDER])
        self._tokens = learner.sum_of(sum(row.trained_tokens() for row in rows))
        self._divisor = max(self._tokens, 1.0)
        self._sums = torch.zeros(3, dtype=torch.float64, device=learner.device)
        self._chosen = None if balance is None else balance.chosen
        self._weight = 0.0 if balance is None else balance.weight
        own = self.batches if rows else []
        self._balance = None if balance is None else StepBalance(balance, learner, own)

    def __call__(self, micro: MicroBatch) -> Tensor:
        """The micro-batch's share of the loss, with gradient."""
        seen = self._learner.score(micro, with_numbers=True, chosen=self._chosen)
        assert seen.entropies is not None
        assert seen.is_likeliest is not None
        losses = -seen.logprobs
        if self._is_dft:
            losses = losses * seen.logprobs.detach().exp()
        total = losses.sum()
        parts = (total.detach(), seen.entropies.sum(), seen.is_likeliest.sum())
        self._sums += torch.stack([part.double() for part in parts])
        share = total / self._divisor
        if self._balance is None or seen.routing is None:
            return share
        return share + self._balance(seen.routing)

    def numbers(self) -> TextNumbers:
        """What all micro-batches so far, on all processes, came to."""
        means = (self._learner.summed(self._sums) / self._divisor).tolist()
        loss, entropy, accuracy = means
        aux_loss = 0.0 if self._balance is None else self._balance.total()
        return TextNumbers(
            loss=loss + self._weight * aux_loss,
            aux_loss=aux_loss,
            entropy=entropy,
            mean_token_accuracy=accuracy,
            tokens=self._tokens,
        )
