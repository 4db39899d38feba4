"""The reference model of the KL term: where the policy started, or where it lately was."""

import copy
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from corral.algorithms import MicroBatch, token_logprobs
from corral.errors import NotSupportedError, UsageError
from corral.training.grpo_config import GRPOConfig


def check_reference(args: GRPOConfig, model: object, peft_config: object) -> None:
    """Check that a reference that is to move is there and can move.

    Raises:
        UsageError: There is none.
        NotSupportedError: It is the model itself without its adapter, or has an adapter of its own.
    """
    if not args.sync_ref_model:
        return
    if args.beta == 0:
        raise UsageError(
            "sync_ref_model=True with beta=0.0: there is no reference model that could move. Set "
            "beta, or leave sync_ref_model out."
        )
    if peft_config is not None or hasattr(model, "get_base_model"):
        raise NotSupportedError(
            "sync_ref_model=True with an adapter: the reference is the model without it, which "
            "cannot move. Train the whole model, or leave sync_ref_model out and lower beta."
        )


@dataclass(frozen=True, slots=True)
class Reference:
    """Scores tokens as the model did before training, unless it is moved.

    With an adapter that is the model itself, its adapter switched off; without, a frozen copy.
    """

    model: nn.Module
    has_adapter: bool

    def moving(self, policy: nn.Module) -> dict[str, Tensor]:
        """By name: the reference's own of the parameters that the policy trains."""
        trained = {name for name, value in policy.named_parameters() if value.requires_grad}
        return {n: value for n, value in self.model.named_parameters() if n in trained}

    @torch.no_grad()
    def move(self, policy: nn.Module, share: float) -> None:
        """reference ← share · policy + (1 − share) · reference (Gorbatovski et al., 2024).

        Parameters that are not trained are the same in both, and stay so to the last bit.
        """
        trained = dict(policy.named_parameters())
        for name, value in self.moving(policy).items():
            value.mul_(1.0 - share).add_(trained[name], alpha=share)

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


def reference_of(model: nn.Module, args: GRPOConfig, *, has_adapter: bool) -> Reference | None:
    """The reference of a model that has not been trained yet; None when ``beta`` is 0."""
    if not args.beta:
        return None
    if has_adapter:
        return Reference(model, has_adapter=True)
    return Reference(copy.deepcopy(model).eval().requires_grad_(False), has_adapter=False)
