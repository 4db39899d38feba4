"""The KV cache: one preallocated buffer per layer, conversations in its rows.

A row (slot) holds one conversation; rows have different lengths. A forward pass either decodes one
token for each row of the leading window ``[0, window)`` or prefills some tokens of any rows. New
keys and values are written in place at each row's own position and attention gets a view, so that
nothing grows by copying.
"""

import math

import numpy as np
import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin


class WritePlan:
    """Where the tokens of one forward pass go, shared by all layers."""

    def __init__(self, slots: Tensor, positions: Tensor, kv_length: int, window: int | None):
        """Plan to write token (row, i) of the pass at ``positions[row, i]`` of ``slots[row]``.

        Args:
            positions: [rows, tokens]; -1 marks padding, which is written nowhere.
            kv_length: How many positions attention sees.
            window: The pass covers exactly the rows ``[0, window)``; None for any rows.
        """
        self.slots = slots
        self.positions = positions
        self.kv_length = kv_length
        self.window = window
        is_real = positions >= 0
        self.selected = None if bool(is_real.all()) else is_real.flatten().nonzero()[:, 0]
        self._targets: dict[tuple[int, int], Tensor] = {}

    def targets(self, heads: int, capacity: int) -> Tensor:
        """Index of each written vector in a [slots * heads * capacity, head size] buffer."""
        key = (heads, capacity)
        if key not in self._targets:
            head = torch.arange(heads, device=self.slots.device)
            base = (self.slots[:, None, None] * heads + head) * capacity
            index = (base + self.positions[:, :, None]).reshape(-1, heads)
            index = index if self.selected is None else index[self.selected]
            self._targets[key] = index.flatten()
        return self._targets[key]


class SlotLayer(CacheLayerMixin):
    """Keys and values of one layer: [slots, heads, capacity, head size]."""

    is_sliding = False
    is_compileable = False

    def __init__(self, cache: "SlotCache"):
        super().__init__()
        self.cache = cache

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate for the heads, sizes and dtype the model turns out to have."""
        self.keys = self._allocate(key_states)
        self.values = self._allocate(value_states)
        self.is_initialized = True

    def _allocate(self, like: Tensor) -> Tensor:
        return _zeros((self.cache.slots, like.shape[1], self.cache.capacity, like.shape[3]), like)

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Write the new tokens where the plan says and return what attention looks at."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        assert self.keys is not None
        assert self.values is not None
        plan = self.cache.plan
        return (
            _write_and_view(self.keys, key_states, plan),
            _write_and_view(self.values, value_states, plan),
        )

    def copy_rows(self, source: int, target: int, start: int, stop: int) -> None:
        """Copy positions [start, stop) of one row over those of another."""
        for buffer in (self.keys, self.values):
            if buffer is not None:
                buffer[target, :, start:stop] = buffer[source, :, start:stop]

    def swap_rows(self, one: int, other: int, length: int) -> None:
        """Exchange the first ``length`` positions of two rows."""
        for buffer in (self.keys, self.values):
            if buffer is not None:
                held = buffer[one, :, :length].clone()
                buffer[one, :, :length] = buffer[other, :, :length]
                buffer[other, :, :length] = held

    def resize(self, used: list[int]) -> None:
        """Move to buffers of the cache's present size, keeping ``used[slot]`` positions a row."""
        if self.is_initialized:
            assert self.keys is not None
            assert self.values is not None
            self.keys = self._moved(self.keys, used)
            self.values = self._moved(self.values, used)

    def _moved(self, old: Tensor, used: list[int]) -> Tensor:
        new = self._allocate(old)
        for slot, length in enumerate(used[: self.cache.slots]):
            if length:
                new[slot, :, :length] = old[slot, :, :length]
        return new

    def nbytes_per_token(self) -> int:
        """Bytes one position of one row takes in this layer."""
        buffers = [buffer for buffer in (self.keys, self.values) if buffer is not None]
        return sum(b.shape[1] * b.shape[3] * b.element_size() for b in buffers)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Length and offset of what attention sees."""
        return self.cache.plan.kv_length, 0

    def get_seq_length(self) -> int:
        """Rows differ in length; models get explicit positions and masks instead."""
        return 0

    def get_max_length(self) -> int:
        """The buffers grow on demand, so there is no maximum."""
        return -1


def _write_and_view(buffer: Tensor, states: Tensor, plan: WritePlan) -> Tensor:
    """Write [rows, heads, tokens, size] at the plan's targets; return the rows attention reads."""
    heads, capacity, size = buffer.shape[1:]
    new = states.transpose(1, 2).reshape(-1, heads, size)
    if plan.selected is not None:
        new = new[plan.selected]
    flat = buffer.view(-1, size)
    flat.index_copy_(0, plan.targets(heads, capacity), new.reshape(-1, size))
    if plan.window is not None:
        return buffer[: plan.window, :, : plan.kv_length]
    return buffer[:, :, : plan.kv_length].index_select(0, plan.slots)


def _zeros(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Allocate zeros: attention multiplies masked values by 0, and 0 * NaN would be NaN."""
    if like.device.type != "cpu":
        return torch.zeros(shape, dtype=like.dtype, device=like.device)
    # NumPy asks the system for zeroed pages, which take memory only once they are written;
    # torch.zeros would write them all.
    nbytes = math.prod(shape) * like.element_size()
    return torch.from_numpy(np.zeros(nbytes, dtype=np.uint8)).view(like.dtype).view(shape)


class SlotCache(Cache):
    """A ``transformers`` cache whose rows are conversations that come and go."""

    def __init__(self, layers: int):
        self.slots = 0
        self.capacity = 0
        self.plan: WritePlan
        self.slot_layers = [SlotLayer(self) for _ in range(layers)]
        super().__init__(layers=list(self.slot_layers))

    def resize(self, slots: int, capacity: int, used: list[int]) -> None:
        """Change the number of rows or positions, keeping ``used[slot]`` positions of each row."""
        self.slots, self.capacity = slots, capacity
        for layer in self.slot_layers:
            layer.resize(used)

    def clear(self) -> None:
        """Free all buffers."""
        self.slots = self.capacity = 0
        for layer in self.slot_layers:
            layer.keys = layer.values = None
            layer.is_initialized = False

    def copy_rows(self, source: int, target: int, start: int, stop: int) -> None:
        """Copy positions [start, stop) of one row over those of another, in all layers."""
        for layer in self.slot_layers:
            layer.copy_rows(source, target, start, stop)

    def swap_rows(self, one: int, other: int, length: int) -> None:
        """Exchange the first ``length`` positions of two rows, in all layers."""
        for layer in self.slot_layers:
            layer.swap_rows(one, other, length)

    def nbytes_per_token(self) -> int:
        """Bytes one position of one row takes over all layers; 0 before the first pass."""
        return sum(layer.nbytes_per_token() for layer in self.slot_layers)
