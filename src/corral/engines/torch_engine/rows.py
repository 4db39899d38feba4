"""The state of every row of the cache, in arrays, so that a step touches no row in Python."""

import numpy as np

from corral.engines.torch_engine.requests import Request
from corral.engines.torch_engine.sampler import RowSampling

# Array name -> dtype; all have one entry per row.
_FIELDS = {
    "length": np.int64,  # positions whose keys and values are in the cache
    "known": np.int64,  # positions that will be there when a prefill in progress is done
    "active": np.bool_,  # decodes
    "busy": np.bool_,  # has a request: decodes, or is being prefilled
    "stale": np.bool_,  # its cache was made by older weights; forgotten when it finishes
    "used_at": np.int64,
    "prompt_length": np.int64,
    "limit": np.int64,  # the sequence never gets longer than this
    "rope_shift": np.int64,  # what is added to a place to get its position
    "seed": np.uint64,
    "temperature": np.float64,
    "top_p": np.float64,
    "top_k": np.int64,
    "min_p": np.float64,
    "repetition_penalty": np.float64,
}


class Rows:
    """Which conversation is in which row, its ids, and how its present turn is sampled."""

    length: np.ndarray
    known: np.ndarray
    active: np.ndarray
    busy: np.ndarray
    stale: np.ndarray
    used_at: np.ndarray
    prompt_length: np.ndarray
    limit: np.ndarray
    rope_shift: np.ndarray
    seed: np.ndarray
    temperature: np.ndarray
    top_p: np.ndarray
    top_k: np.ndarray
    min_p: np.ndarray
    repetition_penalty: np.ndarray

    def __init__(self) -> None:
        for name, dtype in _FIELDS.items():
            setattr(self, name, np.zeros(0, dtype))
        self.ids = np.zeros((0, 0), np.int64)
        self.logprobs = np.zeros((0, 0), np.float32)
        self.stop_ids = np.full((0, 1), -1, np.int64)
        self.keys: list[str | None] = []
        self.requests: list[Request | None] = []
        self.slot_of: dict[str, int] = {}
        self._clock = 0

    def __len__(self) -> int:
        return len(self.keys)

    def resize(self, rows: int, columns: int) -> None:
        """Grow or cut all arrays; rows that go away must hold nothing."""
        for slot in range(rows, len(self)):
            self.forget(slot)
        for name in _FIELDS:
            setattr(self, name, _resized(getattr(self, name), (rows,), 0))
        self.ids = _resized(self.ids, (rows, columns), 0)
        self.logprobs = _resized(self.logprobs, (rows, columns), 0)
        self.stop_ids = _resized(self.stop_ids, (rows, self.stop_ids.shape[1]), -1)
        missing = rows - len(self)
        self.keys = self.keys[:rows] + [None] * missing
        self.requests = self.requests[:rows] + [None] * missing

    def seat(self, slot: int, request: Request, limit: int) -> None:
        """Give a row to a request: its prompt, its limits, how it is sampled."""
        old_key = self.keys[slot]
        if old_key is not None and self.slot_of.get(old_key) == slot:
            del self.slot_of[old_key]
        params, prompt = request.params, request.prompt
        self.keys[slot], self.slot_of[request.key] = request.key, slot
        self.requests[slot], request.slot = request, slot
        self.ids[slot, : len(prompt)] = prompt
        self.length[slot], self.known[slot] = request.start, len(prompt)
        self.busy[slot], self.active[slot], self.stale[slot] = True, False, False
        self.prompt_length[slot], self.limit[slot] = len(prompt), limit
        self.rope_shift[slot] = request.rope_shift
        self.seed[slot] = params.seed % 2**64
        for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty"):
            getattr(self, name)[slot] = getattr(params, name)
        self._set_stop_ids(slot, sorted(params.stop_ids))

    def _set_stop_ids(self, slot: int, stop_ids: list[int]) -> None:
        if len(stop_ids) > self.stop_ids.shape[1]:
            self.stop_ids = _resized(self.stop_ids, (len(self), len(stop_ids)), -1)
        self.stop_ids[slot] = -1
        self.stop_ids[slot, : len(stop_ids)] = stop_ids

    def leave(self, slot: int, *, keep: bool) -> None:
        """End a row's turn; what is in the cache stays usable if ``keep``."""
        self.requests[slot] = None
        self.busy[slot] = self.active[slot] = False
        self.known[slot] = self.length[slot]
        self._clock += 1
        self.used_at[slot] = self._clock
        if not keep or self.stale[slot]:
            self.forget(slot)

    def release(self, key: str) -> None:
        """Let a conversation's row be taken; until then it still serves as a prefix to copy."""
        slot = self.slot_of.pop(key, None)
        if slot is not None:
            self.keys[slot] = None

    def forget(self, slot: int) -> None:
        """Drop what an idle row holds."""
        key = self.keys[slot]
        if key is not None and self.slot_of.get(key) == slot:
            del self.slot_of[key]
        self.keys[slot] = None
        self.length[slot] = self.known[slot] = 0
        self.stale[slot] = False

    def swap(self, one: int, other: int) -> None:
        """Exchange two rows."""
        pair, reverse = [one, other], [other, one]
        arrays = [getattr(self, name) for name in _FIELDS]
        for array in (*arrays, self.ids, self.logprobs, self.stop_ids):
            array[pair] = array[reverse]
        keys, requests = self.keys, self.requests
        keys[one], keys[other] = keys[other], keys[one]
        requests[one], requests[other] = requests[other], requests[one]
        for slot in pair:
            key, request = self.keys[slot], self.requests[slot]
            if key is not None and self.slot_of.get(key) in pair:
                self.slot_of[key] = slot
            if request is not None:
                request.slot = slot

    def common_prefixes(self, prompt: np.ndarray) -> np.ndarray:
        """For each row, how many of its cached ids, from the first, equal the prompt's."""
        width = min(len(prompt), self.ids.shape[1])
        differs = self.ids[:, :width] != prompt[:width]
        first = np.where(differs.any(1), differs.argmax(1), width)
        return np.minimum(first, self.known)

    def free_slot(self) -> int | None:
        """Return a row no conversation needs: an empty one, else the one released longest ago."""
        free = np.array([key is None for key in self.keys], dtype=bool) & ~self.busy
        return self._oldest(free)

    def idle_slot(self) -> int | None:
        """Return the row whose conversation was used longest ago."""
        return self._oldest(~self.busy)

    def _oldest(self, among: np.ndarray) -> int | None:
        slots = np.flatnonzero(among)
        if not len(slots):
            return None
        has_content = self.length[slots] > 0
        return int(slots[np.lexsort((slots, self.used_at[slots], has_content))[0]])

    def sampling(self, slots: np.ndarray) -> RowSampling:
        """How these rows are sampled."""
        return RowSampling(
            temperature=self.temperature[slots],
            top_p=self.top_p[slots],
            top_k=self.top_k[slots],
            min_p=self.min_p[slots],
            repetition_penalty=self.repetition_penalty[slots],
        )


def _resized(array: np.ndarray, shape: tuple[int, ...], fill: int) -> np.ndarray:
    """Copy into an array of another shape, filling what is new."""
    new = np.full(shape, fill, dtype=array.dtype)
    overlap = tuple(slice(0, min(a, b)) for a, b in zip(array.shape, shape, strict=True))
    new[overlap] = array[overlap]
    return new
