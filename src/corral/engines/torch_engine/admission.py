"""Which waiting turns get a row, and how much of their prompts need not be computed."""

from collections import deque

import numpy as np

from corral.engines.torch_engine.memory import CacheMemory
from corral.engines.torch_engine.requests import Request
from corral.engines.torch_engine.stats import EngineStats

# A shorter common prefix is not worth waiting for another row's prefill, or a copy.
_MIN_SHARED_TOKENS = 16


class Admission:
    """Gives rows to waiting requests: their own conversation's row, else another."""

    def __init__(
        self, memory: CacheMemory, stats: EngineStats, *, max_batch: int, max_context: int,
        reuse: bool,
    ):  # fmt: skip
        self._memory = memory
        self._stats = stats
        self._max_batch = max_batch
        self._max_context = max_context
        self._reuse = reuse

    def admit(self, waiting: deque[Request], version: int) -> list[Request]:
        """Seat as many waiting requests as may run at once, first come first served."""
        admitted: list[Request] = []
        while waiting and int(self._memory.rows.busy.sum()) < self._max_batch:
            request = waiting[0]
            self._memory.ensure_capacity(len(request.prompt) + 2)
            slot = self._find_row(request)
            if slot is None:
                break
            waiting.popleft()
            request.version = version
            self._seat(request, slot)
            admitted.append(request)
        return admitted

    def _find_row(self, request: Request) -> int | None:
        """Return the conversation's own row, or one to start it in."""
        rows = self._memory.rows
        slot = rows.slot_of.get(request.key) if self._reuse else None
        if slot is not None and not rows.busy[slot]:
            return slot
        return self._memory.take_row()

    def _seat(self, request: Request, slot: int) -> None:
        rows = self._memory.rows
        length = len(request.prompt)
        prefixes = rows.common_prefixes(request.prompt) if self._reuse else None
        if prefixes is not None:
            # The last token always goes through the model: its logits are needed.
            request.start = request.whole_images(int(min(prefixes[slot], length - 1)))
            self._stats.reused_tokens += request.start
            prefixes[slot] = 0
            prefixes[rows.stale] = 0
            self._share(request, slot, prefixes)
        limit = min(length + request.params.max_new_tokens, self._max_context)
        rows.seat(slot, request, limit)

    def _share(self, request: Request, slot: int, prefixes: np.ndarray) -> None:
        """Copy a longer common prefix from another row, now or when that row has it."""
        rows = self._memory.rows
        in_cache = np.minimum(prefixes, rows.length)
        now = int(in_cache.argmax())
        ready = request.whole_images(min(int(in_cache[now]), len(request.prompt) - 1))
        later = self._row_being_prefilled(prefixes)
        coming = 0 if later is None else int(prefixes[later.slot])
        is_twin = later is not None and coming == len(request.prompt) == len(later.prompt)
        if not is_twin:
            # Of a longer prompt only the keys can be shared: its logits are another token's.
            coming = request.whole_images(min(coming, len(request.prompt) - 1))
        if ready >= request.start + _MIN_SHARED_TOKENS and ready >= coming - _MIN_SHARED_TOKENS:
            self._memory.cache.copy_rows(now, slot, request.start, ready)
            self._stats.reused_tokens += ready - request.start
            request.start = ready
        elif is_twin or coming >= request.start + _MIN_SHARED_TOKENS:
            request.source, request.shared = later, coming

    def _row_being_prefilled(self, prefixes: np.ndarray) -> Request | None:
        """Return whose row will have the longest common prefix and waits for nobody itself."""
        rows = self._memory.rows
        candidates = [
            request
            for slot in np.flatnonzero(rows.busy & ~rows.active & (prefixes > 0))
            if (request := rows.requests[slot]) is not None and request.source is None
        ]
        return max(candidates, key=lambda one: prefixes[one.slot]) if candidates else None
