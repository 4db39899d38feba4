"""The reference model of the KL term: where the policy started."""

import copy
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from corral.algorithms import MicroBatch, token_logprobs


@dataclass(frozen=True, slots=True)
class Reference:
    """Scores tokens as the model did before training.

    With an adapter that is the model itself, its adapter switched off; without, a frozen copy.
    """

    model: nn.Module
    has_adapter: bool

    @classmethod
    def of(cls, model: nn.Module, *, has_adapter: bool) -> "Reference":
        """The reference of a model that has not been trained yet."""
        if has_adapter:
            return cls(model, has_adapter=True)
        return cls(copy.deepcopy(model).eval().requires_grad_(False), has_adapter=False)

    @torch.no_grad()
    def logprobs(self, batch: MicroBatch, *, temperature: float, chunk_tokens: int) -> Tensor:
        """Logprobs [N] of the batch's trained tokens."""
        was_training = self.model.training
        self.model.eval()
        try:
            with self._without_adapter():
                scored = token_logprobs(
                    self.model, batch, temperature=temperature, chunk_tokens=chunk_tokens
                )
        finally:
            self.model.train(was_training)
        return scored.logprobs

    def _without_adapter(self) -> AbstractContextManager[Any]:
        return cast(Any, self.model).disable_adapter() if self.has_adapter else nullcontext()
