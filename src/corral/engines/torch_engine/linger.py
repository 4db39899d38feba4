"""Whether to hold the next step a moment for conversations about to come back.

A tool that answers at once brings its conversation back a moment after its turn ended. Waiting
that moment puts the whole batch back together: fewer, fuller passes, and the same batches in every
run. A slow tool is never waited for.
"""

# A tool that takes longer on average is slow: its conversation joins whenever it comes.
_LONGEST_WAIT_S = 0.005
_MARGIN_S = 0.001
_FIRST_GUESS_S = 0.002
# The weight of the newest latency in the average, and the longest latency that counts: the average
# must come back down within some ten turns after one slow tool.
_WEIGHT = 0.2
_LONGEST_COUNTED_S = 0.05


class Linger:
    """Keeps a moving average of how soon conversations return, and who is expected."""

    def __init__(self) -> None:
        self._ended_at: dict[str, float] = {}
        self._latency_s = _FIRST_GUESS_S
        self._last_event_s = 0.0

    def turn_ended(self, key: str, now_s: float) -> None:
        """Note that a conversation's turn was delivered."""
        self._ended_at[key] = self._last_event_s = now_s

    def arrived(self, key: str, now_s: float) -> None:
        """Note that a conversation asks for a turn, perhaps after one that ended."""
        ended_at = self._ended_at.pop(key, None)
        if ended_at is not None:
            self._count(now_s - ended_at)
            self._last_event_s = now_s

    def released(self, key: str) -> None:
        """Note that a conversation is over."""
        self._ended_at.pop(key, None)

    def wait_s(self, now_s: float) -> float:
        """Return how much longer to wait for someone to come back; 0 for not at all.

        Each arrival renews the wait, so that many quick tools one after the other all make it.
        """
        self._count_the_lost(now_s)
        if not self._ended_at or self._latency_s > _LONGEST_WAIT_S:
            return 0.0
        patience = min(_LONGEST_WAIT_S, 2 * self._latency_s + _MARGIN_S)
        return max(0.0, self._last_event_s + patience - now_s)

    def _count_the_lost(self, now_s: float) -> None:
        """Count those who did not come for long as slow, and expect them no more."""
        lost = [key for key, at in self._ended_at.items() if now_s - at > _LONGEST_COUNTED_S]
        for key in lost:
            del self._ended_at[key]
            self._count(_LONGEST_COUNTED_S)

    def _count(self, latency_s: float) -> None:
        self._latency_s += _WEIGHT * (min(latency_s, _LONGEST_COUNTED_S) - self._latency_s)
