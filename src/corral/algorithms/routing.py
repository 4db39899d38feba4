"""Where a mixture of experts sends tokens, and the loss that keeps it from sending all to a few."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """Sums over the tokens and layers of some rows, for E experts; sums of parts add up."""

    counts: Tensor
    """[E] how often each expert was among the chosen ones."""
    probabilities: Tensor
    """[E] the router's probability of each expert; the gradient flows through these."""


def routing_of(
    router_logits: Sequence[Tensor], attention_mask: Tensor | None, *, chosen: int
) -> Routing:
    """The routing of a forward pass.

    Args:
        router_logits: Of each layer, [lines × length, E].
        attention_mask: [lines, length], 0 where tokens do not count; None: all count.
        chosen: Experts that a token is sent to.
    """
    counts, probabilities = torch.zeros(()), torch.zeros(())
    for logits in router_logits:
        chances = logits.float().softmax(dim=-1)
        places = chances.topk(chosen, dim=-1).indices
        is_chosen = torch.zeros_like(chances).scatter_(-1, places, 1.0)
        weights = chances.new_ones(len(chances), 1)
        if attention_mask is not None:
            weights = attention_mask.reshape(-1, 1).to(chances.dtype)
        counts = counts.to(chances.device) + (is_chosen * weights).sum(dim=0)
        probabilities = probabilities.to(chances.device) + (chances * weights).sum(dim=0)
    return Routing(counts=counts.detach(), probabilities=probabilities)


def balance_loss(routing: Routing, counts: Tensor, *, chosen: int) -> Tensor:
    """A part's share of the balance loss of a whole step: E · Σₑ fₑ · pₑ.

    fₑ is the mean number of times that expert e is chosen for a token, pₑ its mean probability
    (Switch Transformers, Fedus et al., 2021, as transformers computes it for several choices). It
    is ``chosen`` when all are equal. With the counts of the step given, shares add up however it
    was cut.

    Args:
        counts: [E] those of the whole step.
    """
    tokens = counts.sum() / chosen
    frequencies = counts / tokens
    return len(counts) * (frequencies * routing.probabilities).sum() / tokens
