"""Logits in float32 from a model that computes in something coarser."""

from typing import Any, cast

import torch
from torch import Tensor, nn

from corral.errors import UsageError


class PreciseHead(nn.Module):
    """An output head that multiplies in float32, also within autocast."""

    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        self.weight = head.weight
        self.bias = head.bias

    def forward(self, hidden: Tensor) -> Tensor:
        """Logits [..., vocabulary] in float32 of hidden states [..., width] of any type."""
        with torch.autocast(hidden.device.type, enabled=False):
            return nn.functional.linear(hidden.float(), self.weight, self.bias)


def make_head_precise(model: nn.Module) -> None:
    """Put a :class:`PreciseHead` in the place of a model's output head.

    Its weight becomes float32. Where the input embeddings share it they do, too, but what they give
    keeps the type it had.

    Raises:
        UsageError: The head is more than a plain matrix: it has an adapter or is quantised.
    """
    wrapper = cast(Any, model)
    inner = wrapper.get_base_model() if hasattr(model, "get_base_model") else wrapper
    head = inner.get_output_embeddings()
    if type(head) is not nn.Linear:
        raise UsageError(
            f"cast_lm_head_to_fp32=True with a {type(head).__name__} as output head: an adapter on "
            "it, or a quantised one, computes in its own type. Leave lm_head out of the adapter's "
            "target_modules, or cast_lm_head_to_fp32 out."
        )
    before = head.weight.dtype
    embeddings = inner.get_input_embeddings()
    head.float()
    if embeddings.weight is head.weight and before != torch.float32:
        embeddings.register_forward_hook(lambda module, inputs, output: output.to(before))
    inner.set_output_embeddings(PreciseHead(head))
