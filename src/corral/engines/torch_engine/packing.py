"""Weights in the layout that oneDNN multiplies fastest, made once per update of the weights.

PyTorch lays a weight out anew in every product. With few rows that costs more than the product, and
how a row is rounded depends on how many there are. Products with weights that are laid out
beforehand take about half the time for 8 rows, and round every row alike from two rows on.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

# Weights that fit into a processor's caches are multiplied faster as they are.
_LEAST_WEIGHTS = 4_000_000
# The number of rows the layout is made for. One made for a single row rounds others differently.
_ROWS_HINT = 16


class _Packed(NamedTuple):
    state: tuple[int, int]
    """Where the weight was when it was packed, and how often it had been changed."""
    forward: Callable[[Tensor], Tensor]


class PackedLinears:
    """The linear layers of a model that are worth packing, and their packed weights.

    The packed copy takes as much memory as the weights. The model itself is changed only within
    ``in_use``.
    """

    def __init__(self, model: nn.Module):
        linears = [m for m in model.modules() if isinstance(m, nn.Linear) and _can_pack(m)]
        is_worth_it = sum(linear.weight.numel() for linear in linears) >= _LEAST_WEIGHTS
        self._linears = linears if is_worth_it else []
        self._packed: dict[nn.Linear, _Packed] = {}
        self.rounds_alike = bool(self._linears) and _are_all_products(model, self._linears)
        """Whether two rows are enough for a row's numbers not to depend on the others."""

    def drop(self) -> None:
        """Forget the packed weights: the model's have changed."""
        self._packed.clear()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Have the model multiply with packed weights."""
        for linear in self._linears:
            # Who changes weights is to say so; who forgets it must not sample from the old ones.
            state = (linear.weight.data_ptr(), linear.weight._version)
            packed = self._packed.get(linear)
            if packed is None or packed.state != state:
                packed = self._packed[linear] = _Packed(state, _packed_forward(linear))
            # Past nn.Module.__setattr__, which takes longer than the rest of this loop.
            linear.__dict__["forward"] = packed.forward
        try:
            yield
        finally:
            for linear in self._linears:
                linear.__dict__.pop("forward", None)


def _can_pack(linear: nn.Linear) -> bool:
    # A subclass (a quantised layer, an adapter) or a replaced forward may do more than multiply.
    if type(linear) is not nn.Linear or "forward" in linear.__dict__:
        return False
    weight = linear.weight
    if type(weight) is not nn.Parameter or weight.device.type != "cpu":
        return False
    if not torch.backends.mkldnn.is_available():
        return False
    if weight.dtype == torch.bfloat16:
        return torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return weight.dtype == torch.float32


def _are_all_products(model: nn.Module, linears: list[nn.Linear]) -> bool:
    """Whether no weight but those of ``linears``, in float32, is multiplied with activations."""
    if any(linear.weight.dtype != torch.float32 for linear in linears):
        return False
    known = {id(linear.weight) for linear in linears}
    known |= {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    return all(id(weight) in known for weight in model.parameters() if weight.ndim > 1)


def _packed_forward(linear: nn.Linear) -> Callable[[Tensor], Tensor]:
    with torch.no_grad():
        packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), _ROWS_HINT)

    def forward(input: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(input, packed, linear.bias, "none", [], "")

    return forward
