"""What the model does next: admit waiting turns, prefill their prompts, decode all rows."""

from collections import deque

import numpy as np
import torch
from torch import Tensor

from corral.engines.torch_engine.admission import Admission
from corral.engines.torch_engine.forward import Forward
from corral.engines.torch_engine.memory import CacheMemory
from corral.engines.torch_engine.pieces import choose_pieces
from corral.engines.torch_engine.randomness import uniforms
from corral.engines.torch_engine.requests import Finished, Request
from corral.engines.torch_engine.sampler import sample_rows
from corral.engines.torch_engine.stats import EngineStats
from corral.records import Finish, Sampled

# Below this share of useful rows, moving rows together is cheaper than decoding the idle ones.
_DENSE_SHARE = 0.6


class Scheduler:
    """Sequences model passes over the rows of a cache. Not thread-safe: one owner at a time."""

    def __init__(
        self, forward: Forward, memory: CacheMemory, stats: EngineStats, *, max_batch: int,
        max_context: int, keep_kv: bool,
    ):  # fmt: skip
        self.forward = forward
        self.memory = memory
        self.stats = stats
        self.waiting: deque[Request] = deque()
        self.prefilling: list[Request] = []
        self.version = 0
        self._keep_kv = keep_kv
        self._admission = Admission(
            memory, stats, max_batch=max_batch, max_context=max_context, reuse=keep_kv
        )

    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return bool(self.waiting or self.prefilling or self.memory.rows.active.any())

    def step(self) -> list[Finished]:
        """Run one pass of the model: prefill if a prompt waits for it, else decode."""
        self._drop_abandoned()
        if self.waiting:
            self.prefilling += self._admission.admit(self.waiting, self.version)
        if self.prefilling:
            return self._prefill()
        if self.memory.rows.active.any():
            return self._decode()
        return []

    def release(self, key: str) -> None:
        """Forget a conversation."""
        self.memory.rows.release(key)

    def weights_changed(self, version: int) -> None:
        """Drop what older weights computed; turns under way finish, and are dropped then."""
        self.version = version
        self.forward.weights.drop()
        rows = self.memory.rows
        rows.stale |= rows.busy
        for slot in np.flatnonzero(~rows.busy):
            rows.forget(int(slot))

    def abandon_all(self) -> list[Request]:
        """Forget everything; return the requests that were waiting or under way."""
        rows = self.memory.rows
        requests = [*self.waiting, *(request for request in rows.requests if request is not None)]
        self.waiting.clear()
        self.prefilling.clear()
        self.memory.clear()
        return requests

    def _drop_abandoned(self) -> None:
        if any(request.is_abandoned() for request in self.waiting):
            kept = [request for request in self.waiting if not request.is_abandoned()]
            self.waiting = deque(kept)
        rows = self.memory.rows
        for slot, request in enumerate(rows.requests):
            # One that is being prefilled may be what others copy from: it goes when it is done.
            if request is not None and rows.active[slot] and request.is_abandoned():
                rows.leave(slot, keep=self._keep_kv)

    def _prefill(self) -> list[Finished]:
        """Run one pass over the next pieces of prompts; sample where a prompt is complete."""
        chosen = choose_pieces([one for one in self.prefilling if one.source is None])
        logits = self.forward.prefill([piece for _, piece in chosen])
        rows = self.memory.rows
        complete: list[tuple[int, Request]] = []
        for index, (request, piece) in enumerate(chosen):
            self.stats.prefill_tokens += len(piece.ids)
            request.start = rows.length[request.slot] = piece.stop()
            if request.start == len(request.prompt):
                complete.append((index, request))
        complete += self._complete_twins(complete)
        self._copy_shared_prefixes()
        if not complete:
            return []
        done = [request for _, request in complete]
        self.prefilling = [request for request in self.prefilling if request not in done]
        slots = np.array([request.slot for request in done])
        rows.active[slots] = True
        index = torch.tensor([index for index, _ in complete], device=logits.device)
        return self._sample(slots, logits[index])

    def _copy_shared_prefixes(self) -> None:
        """Copy common prefixes from rows that have them now, before those rows can be reused."""
        for request in self.prefilling:
            source = request.source
            if source is None or source.start < request.shared:
                continue
            if request.shared == len(request.prompt):
                continue
            self._copy(source, request)

    def _copy(self, source: Request, request: Request) -> None:
        """Copy the common prefix the request waited for."""
        start, stop = request.start, request.shared
        self.memory.cache.copy_rows(source.slot, request.slot, start, stop)
        self.stats.reused_tokens += stop - start
        request.start = self.memory.rows.length[request.slot] = stop
        request.source = None

    def _complete_twins(self, complete: list[tuple[int, Request]]) -> list[tuple[int, Request]]:
        """Give requests with the very prompt of a completed one its cache and its logits."""
        index_of = {id(request): index for index, request in complete}
        twins: list[tuple[int, Request]] = []
        for request in self.prefilling:
            source = request.source
            is_twin = source is not None and request.shared == len(request.prompt)
            if source is not None and is_twin and id(source) in index_of:
                twins.append((index_of[id(source)], request))
                self._copy(source, request)
        return twins

    def _decode(self) -> list[Finished]:
        """Run one token for every active row."""
        self._compact()
        rows = self.memory.rows
        active = np.flatnonzero(rows.active)
        longest = int(rows.length[active].max())
        self.memory.ensure_capacity(longest + 2)
        # Idle rows fill the pass up to the least it should have.
        window = min(max(int(active[-1]) + 1, self.forward.least_rows), len(rows))
        positions = rows.length[:window].copy()
        # An idle row may be at a placeholder of its next image.
        tokens = np.maximum(rows.ids[np.arange(window), positions], 0)
        keep = None if len(active) == window else active
        shift = rows.rope_shift[:window]
        logits = self.forward.decode(
            tokens,
            positions,
            longest + 1,
            keep=keep,
            rope=positions + shift if shift.any() else None,
        )
        rows.length[active] += 1
        rows.known[active] += 1
        self.stats.decode_steps += 1
        return self._sample(active, logits)

    def _compact(self) -> None:
        """Move active rows to the front when too many idle ones lie between them."""
        rows = self.memory.rows
        active = np.flatnonzero(rows.active)
        count = len(active)
        if count >= _DENSE_SHARE * (active[-1] + 1):
            return
        holes = np.flatnonzero(~rows.active[:count])
        for hole, mover in zip(holes, active[active >= count], strict=True):
            self.memory.swap(int(hole), int(mover))

    def _sample(self, slots: np.ndarray, logits: Tensor) -> list[Finished]:
        """Draw the next id of these rows and return the turns it ends."""
        rows = self.memory.rows
        where = rows.length[slots]
        sampling = rows.sampling(slots)
        history = None
        if (sampling.repetition_penalty != 1).any():
            seen = [rows.ids[s, :n] for s, n in zip(slots, where, strict=True)]
            history = [torch.from_numpy(ids[ids >= 0]) for ids in seen]
        draws = uniforms(rows.seed[slots], where - rows.prompt_length[slots])
        tokens, logprobs = sample_rows(logits, sampling, draws, history)
        ids = tokens.cpu().numpy()
        rows.ids[slots, where] = ids
        rows.logprobs[slots, where] = logprobs.cpu().numpy()
        self.stats.decode_tokens += len(slots)
        stopped = (rows.stop_ids[slots] == ids[:, None]).any(1)
        ended = stopped | (where + 1 >= rows.limit[slots])
        return [
            self._finish(int(slots[i]), Finish.STOP if stopped[i] else Finish.LENGTH)
            for i in np.flatnonzero(ended)
        ]

    def _finish(self, slot: int, finish: Finish) -> Finished:
        rows = self.memory.rows
        request = rows.requests[slot]
        assert request is not None
        turn = slice(int(rows.prompt_length[slot]), int(rows.length[slot]) + 1)
        sampled = Sampled(
            ids=tuple(rows.ids[slot, turn].tolist()),
            logprobs=tuple(rows.logprobs[slot, turn].tolist()),
            finish=finish,
            version=request.version,
        )
        rows.leave(slot, keep=self._keep_kv)
        return Finished(request=request, sampled=sampled)
