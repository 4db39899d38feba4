"""Forward passes over a model and its slot cache: ragged prefill and one decode step."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from corral.engines.torch_engine.architecture import Architecture
from corral.engines.torch_engine.cache import SlotCache, WritePlan
from corral.engines.torch_engine.packing import PackedLinears
from corral.engines.torch_engine.shapes import head_positions, key_count, least_rows, pass_width


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Tokens to run for one row: ``ids`` go to positions ``start``, ``start + 1``, ..."""

    slot: int
    start: int
    ids: np.ndarray

    def stop(self) -> int:
        """One past the last position written."""
        return self.start + len(self.ids)


class Forward:
    """Runs a model on the rows of a slot cache."""

    def __init__(self, architecture: Architecture, device: torch.device):
        self.architecture = architecture
        self.device = device
        self.cache = SlotCache(architecture.layers)
        self.weights = PackedLinears(architecture.model)
        self.least_rows = least_rows(is_packed=self.weights.rounds_alike)

    def decode(
        self, tokens: np.ndarray, positions: np.ndarray, kv_length: int, *, keep: np.ndarray | None
    ) -> Tensor:
        """Run one token for each row of the window; return the logits of the rows in ``keep``.

        Args:
            positions: Where each row's token goes; rows that are idle write past their end.
            kv_length: One past the last position of the longest row that matters.
            keep: Rows whose logits are wanted; None for all.
        """
        window = len(tokens)
        kv_length = key_count(kv_length, self.cache.capacity)
        slots = torch.arange(window, device=self.device)
        where = torch.from_numpy(positions).to(self.device)[:, None]
        self.cache.plan = WritePlan(slots, where, kv_length, window)
        logits = self._run(torch.from_numpy(tokens).to(self.device)[:, None], where, kv_length)
        logits = logits[:, -1]
        return logits if keep is None else logits[torch.from_numpy(keep).to(self.device)]

    def prefill(self, pieces: Sequence[Piece]) -> Tensor:
        """Run several rows' tokens together; return the logits after each one's last token.

        Rows are aligned at their ends, so that the last position is the last token of all.
        """
        longest = pass_width(max(len(piece.ids) for piece in pieces))
        tokens = np.zeros((len(pieces), longest), dtype=np.int64)
        positions = np.full((len(pieces), longest), -1, dtype=np.int64)
        for row, piece in enumerate(pieces):
            tokens[row, longest - len(piece.ids) :] = piece.ids
            positions[row, longest - len(piece.ids) :] = np.arange(piece.start, piece.stop())
        kv_length = key_count(max(piece.stop() for piece in pieces), self.cache.capacity)
        slots = torch.tensor([piece.slot for piece in pieces], device=self.device)
        where = torch.from_numpy(positions).to(self.device)
        self.cache.plan = WritePlan(slots, where, kv_length, None)
        return self._run(torch.from_numpy(tokens).to(self.device), where, kv_length)[:, -1]

    def _run(self, tokens: Tensor, positions: Tensor, kv_length: int) -> Tensor:
        architecture = self.architecture
        arguments = {
            "input_ids": tokens,
            "attention_mask": self._masks(positions, kv_length),
            architecture.cache_argument: self.cache,
            "use_cache": True,
        }
        if architecture.has_position_ids:
            arguments["position_ids"] = positions.clamp(min=0)
        if architecture.has_logits_to_keep:
            positions_kept = head_positions(len(tokens), self.least_rows)
            arguments["logits_to_keep"] = min(positions_kept, tokens.shape[1])
        with torch.no_grad(), self.weights.in_use():
            return architecture.model(**arguments).logits

    def _masks(self, positions: Tensor, kv_length: int) -> Tensor | dict[str, Tensor]:
        """Build the 4D masks once for all layers; by name if the model has two kinds of layers."""
        kinds = self.architecture.layer_types
        masks = {kind: self._mask(kind, positions, kv_length) for kind in kinds}
        return masks if len(masks) > 1 else next(iter(masks.values()))

    def _mask(self, kind: str, positions: Tensor, kv_length: int) -> Tensor:
        keys = torch.arange(kv_length, device=self.device)
        # Padding looks at position 0: a row that looks at nothing could yield NaN.
        query = positions.clamp(min=0)[:, None, :, None]
        mask = keys <= query
        window = self.architecture.sliding_window
        if kind == "sliding_attention" and window is not None:
            mask &= keys > query - window
        if self.architecture.attention == "sdpa":
            return mask
        dtype = next(self.architecture.model.parameters()).dtype
        zero = torch.zeros((), dtype=dtype, device=self.device)
        return torch.where(mask, zero, torch.finfo(dtype).min)


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Turn dropout and the like off, and give each module its own flag back afterwards."""
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True
