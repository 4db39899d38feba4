"""How large the cache may get, and who has to leave when it does."""

import os

import numpy as np
import torch

from corral.engines.torch_engine.cache import SlotCache
from corral.engines.torch_engine.rows import Rows
from corral.engines.torch_engine.shapes import LEAST_ROWS

_FIRST_CAPACITY = 256
_CAPACITY_STEP = 64
_FIRST_ROWS = LEAST_ROWS
# Idle conversations kept per active one, at most: beyond it, looking for prefixes costs more
# than it finds.
_ROWS_PER_ACTIVE = 4
_SHARE_OF_MEMORY = 0.25


def default_budget_bytes(device: torch.device) -> int:
    """Return a quarter of the memory: free on the accelerator, physical on the host."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0] * _SHARE_OF_MEMORY)
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return int(physical * _SHARE_OF_MEMORY)


class CacheMemory:
    """Grows the cache and its row table together, within a budget of bytes."""

    def __init__(
        self, cache: SlotCache, *, max_batch: int, max_context: int, budget_bytes: int,
        bytes_per_token: int,
    ):  # fmt: skip
        self.cache = cache
        self.rows = Rows()
        self._max_rows = max(max_batch * _ROWS_PER_ACTIVE, LEAST_ROWS)
        # One more id than cached positions, and one position idle rows may scribble on.
        self._max_capacity = max_context + 2
        self._budget_bytes = budget_bytes
        self._bytes_per_token = max(bytes_per_token, 1)

    def ensure_capacity(self, positions: int) -> None:
        """Make all rows at least ``positions`` long."""
        if positions <= self.cache.capacity:
            return
        wanted = max(positions, 2 * self.cache.capacity, _FIRST_CAPACITY)
        wanted = -(-wanted // _CAPACITY_STEP) * _CAPACITY_STEP
        capacity = max(positions, min(wanted, self._max_capacity))
        allowed = self._allowed_rows(capacity)
        if len(self.rows) > allowed:
            self._crowd(allowed)
        rows = max(min(len(self.rows), allowed), int(self.rows.busy.sum()))
        self._resize(rows, capacity)

    def take_row(self) -> int | None:
        """Return a row to use: free, else new, else of the conversation idle longest."""
        slot = self.rows.free_slot()
        if slot is not None:
            return slot
        count, allowed = len(self.rows), self._allowed_rows(self.cache.capacity)
        if count < allowed:
            self._resize(min(max(2 * count, _FIRST_ROWS), allowed), self.cache.capacity)
            return count
        return self.rows.idle_slot()

    def swap(self, one: int, other: int) -> None:
        """Exchange two rows in the table and in the cache."""
        lengths = self.rows.length
        self.cache.swap_rows(one, other, int(max(lengths[one], lengths[other])))
        self.rows.swap(one, other)

    def clear(self) -> None:
        """Forget everything and free the buffers."""
        self.cache.clear()
        self.rows = Rows()

    def _allowed_rows(self, capacity: int) -> int:
        per_row = self._bytes_per_token * max(capacity, _FIRST_CAPACITY)
        return max(1, min(self._max_rows, self._budget_bytes // per_row))

    def _resize(self, rows: int, capacity: int) -> None:
        used = self.rows.length.tolist()
        self.rows.resize(rows, capacity)
        self.cache.resize(rows, capacity, used)

    def _crowd(self, count: int) -> None:
        """Move the ``count`` rows most worth keeping to the front."""
        rows = self.rows
        worth = np.lexsort((-rows.used_at, ~rows.busy))[: max(count, int(rows.busy.sum()))]
        holes = sorted(set(range(len(worth))) - set(worth.tolist()))
        movers = [int(slot) for slot in worth if slot >= len(worth)]
        for hole, mover in zip(holes, movers, strict=True):
            self.swap(hole, mover)
