"""Forward passes over a model and its slot cache: ragged prefill and one decode step."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from corral.engines.torch_engine.architecture import Architecture
from corral.engines.torch_engine.cache import SlotCache, WritePlan
from corral.engines.torch_engine.packing import PackedLinears
from corral.engines.torch_engine.shapes import head_positions, key_count, least_rows, pass_width
from corral.records import ModelImage
from corral.vision import joined


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Tokens to run for one row: ``ids`` go to positions ``start``, ``start + 1``, ..."""

    slot: int
    start: int
    ids: np.ndarray
    positions: np.ndarray | None = None
    """[3, tokens] for rotary embeddings, where they are not the places of the tokens."""
    images: tuple[ModelImage, ...] = ()
    """What the placeholders among ``ids`` stand for."""

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
        self,
        tokens: np.ndarray,
        positions: np.ndarray,
        kv_length: int,
        *,
        keep: np.ndarray | None,
        rope: np.ndarray | None = None,
    ) -> Tensor:
        """Run one token for each row of the window; return the logits of the rows in ``keep``.

        Args:
            positions: Where each row's token goes; rows that are idle write past their end.
            kv_length: One past the last position of the longest row that matters.
            keep: Rows whose logits are wanted; None for all.
            rope: The tokens' positions for rotary embeddings, where they are not ``positions``.
        """
        window = len(tokens)
        kv_length = key_count(kv_length, self.cache.capacity)
        slots = torch.arange(window, device=self.device)
        where = torch.from_numpy(positions).to(self.device)[:, None]
        self.cache.plan = WritePlan(slots, where, kv_length, window)
        shifted = None if rope is None else torch.from_numpy(rope).to(self.device)[:, None]
        inputs = torch.from_numpy(tokens).to(self.device)[:, None]
        logits = self._run(inputs, where, kv_length, rope=shifted)[:, -1]
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
        inputs = torch.from_numpy(tokens).to(self.device)
        rope = self._rope(pieces, where)
        return self._run(inputs, where, kv_length, rope=rope, images=_images(pieces))[:, -1]

    def _rope(self, pieces: Sequence[Piece], where: Tensor) -> Tensor | None:
        """Positions [3, rows, tokens] if a piece has some of its own."""
        if all(piece.positions is None for piece in pieces):
            return None
        rope = where.clamp(min=0).repeat(3, 1, 1)
        for row, piece in enumerate(pieces):
            if piece.positions is not None:
                own = torch.from_numpy(piece.positions).to(self.device)
                rope[:, row, rope.shape[2] - len(piece.ids) :] = own
        return rope

    def _run(
        self,
        tokens: Tensor,
        positions: Tensor,
        kv_length: int,
        *,
        rope: Tensor | None = None,
        images: Sequence[ModelImage] = (),
    ) -> Tensor:
        architecture = self.architecture
        arguments: dict[str, Any] = {
            "input_ids": tokens,
            "attention_mask": self._masks(positions, kv_length),
            architecture.cache_argument: self.cache,
            "use_cache": True,
        }
        if architecture.has_position_ids:
            arguments["position_ids"] = positions.clamp(min=0) if rope is None else rope
        if architecture.has_router_logits:
            arguments["output_router_logits"] = False
        if images:
            arguments |= {name: value.to(self.device) for name, value in joined(images).items()}
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


def _images(pieces: Sequence[Piece]) -> list[ModelImage]:
    return [image for piece in pieces for image in piece.images]


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
