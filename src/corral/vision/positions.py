"""Positions of tokens in models whose rotary embedding counts an image's rows and columns.

In such models (Qwen2-VL and its successors, GLM-4V) the tokens of an image share one moment and are
told apart by their place in the picture, so text after an image has smaller positions than its
place in the sequence. The models bring the rule as ``get_rope_index``.
"""

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

_ARGUMENT = "mm_token_type_ids"


def rope_owner(model: nn.Module) -> Any | None:
    """The module that knows the positions of images; None for models that count tokens."""
    unwrap = getattr(model, "get_base_model", None)
    whole: Any = model if unwrap is None else unwrap()
    for module in (whole, getattr(whole, "model", None)):
        if hasattr(module, "get_rope_index"):
            return module
    return None


def image_positions(
    owner: Any,
    input_ids: Tensor,
    is_placeholder: Tensor,
    inputs: Mapping[str, Tensor],
    attention_mask: Tensor | None = None,
) -> Tensor:
    """Positions [3, lines, length] of rows with images; text rows among them count as ever.

    Args:
        owner: From :func:`rope_owner`.
        is_placeholder: [lines, length] bool: the tokens that stand for pixels.
        inputs: The images' tensors, those of all lines in order.
    """
    parameters = inspect.signature(owner.get_rope_index).parameters
    arguments = {name: value for name, value in inputs.items() if name in parameters}
    if _ARGUMENT in parameters:
        arguments[_ARGUMENT] = is_placeholder.int()
    with torch.no_grad():
        positions, _ = owner.get_rope_index(
            input_ids=input_ids, attention_mask=attention_mask, **arguments
        )
    return positions
