"""The balance loss of a mixture of experts, where a model has one and its weight is not 0."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from corral.algorithms import MicroBatch, Routing, balance_loss
from corral.errors import UsageError
from corral.training.learner import Learner

AUX_LOSS = "aux_loss"
"""The metric of a mixture of experts: its balance loss, not weighed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertBalance:
    """What the balance loss of a model is made of; :class:`StepBalance` adds it to a step's."""

    weight: float
    """What it is multiplied by."""
    experts: int
    """Experts of a layer."""
    chosen: int
    """Experts that a token is sent to."""

    @classmethod
    def of(cls, model: nn.Module, weight: float | None) -> "ExpertBalance | None":
        """That of a model; None where there is none, or it weighs nothing.

        Args:
            weight: The weight that is asked for; None: the one that the model's configuration has.

        Raises:
            UsageError: A weight is asked for, and the model has no experts.
        """
        wrapper = cast(Any, model)
        inner = wrapper.get_base_model() if hasattr(model, "get_base_model") else wrapper
        config = inner.config.get_text_config()
        if not hasattr(config, "output_router_logits"):
            if weight:
                raise UsageError(
                    f"router_aux_loss_coef={weight} with a {type(inner).__name__}, which has no "
                    "router whose choices it gives: leave it out."
                )
            return None
        own = getattr(config, "router_aux_loss_coef", 0.0)
        weight = own if weight is None else weight
        if not weight:
            return None
        experts = getattr(config, "num_experts", None) or config.num_local_experts
        return cls(weight=weight, experts=experts, chosen=config.num_experts_per_tok)


class StepBalance:
    """The balance loss of one step, summed over its micro-batches."""

    def __init__(
        self, balance: ExpertBalance, learner: Learner, batches: Sequence[MicroBatch]
    ) -> None:
        """
        Args:
            batches: Those of this process; none is what a process has that only takes part.
        """
        self._balance, self._learner = balance, learner
        self._takes_part_only = not batches
        self._counts = self._counted(batches)
        self._sum = torch.zeros((), dtype=torch.float64, device=learner.device)

    def __call__(self, routing: Routing) -> Tensor:
        """A micro-batch's share, weighed, with gradient."""
        if self._takes_part_only:
            return 0.0 * routing.probabilities.sum()
        counts = routing.counts if self._counts is None else self._counts
        share = balance_loss(routing, counts, chosen=self._balance.chosen)
        self._sum += share.detach().double()
        return self._balance.weight * share

    def total(self) -> float:
        """The loss of all micro-batches so far, on all processes, not weighed."""
        return self._learner.sum_of(float(self._sum))

    def _counted(self, batches: Sequence[MicroBatch]) -> Tensor | None:
        """[E] how often each expert is chosen in the step, over all micro-batches and processes.

        It takes a forward pass before the one with gradients. None where a step is a single
        micro-batch, which knows by itself.
        """
        if self._learner.sum_of(len(batches)) == 1:
            return None
        total = torch.zeros(self._balance.experts, device=self._learner.device)
        with torch.no_grad():
            for batch in batches:
                scored = self._learner.score(batch, chosen=self._balance.chosen)
                total += cast(Routing, scored.routing).counts
        return self._learner.summed(total)
