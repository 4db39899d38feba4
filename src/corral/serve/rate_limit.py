"""How often one client may knock: a token bucket for each address."""

import time
from collections import OrderedDict
from collections.abc import Callable

MAX_CLIENTS = 10_000
"""Addresses remembered; beyond that, the one heard longest ago starts anew."""


class RateLimiter:
    """Buckets that fill at ``per_s`` up to ``burst``; every request takes one out.

    Not for several threads: the event loop asks it.
    """

    def __init__(
        self, *, per_s: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_s = per_s
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Address to what was left and when; in the order in which they were last heard."""

    def take(self, client: str) -> float:
        """Let one request in (0.0), or say after how many seconds to come again."""
        left = self._left(client)
        if left < 1.0:
            return (1.0 - left) / self._per_s
        self._put(client, left - 1.0)
        return 0.0

    def charge(self, client: str, cost: float) -> None:
        """Take ``cost`` out, into debt if need be, so that guessing tokens is slow."""
        self._put(client, max(self._left(client) - cost, -self._burst))

    def _left(self, client: str) -> float:
        left, since = self._buckets.get(client, (self._burst, 0.0))
        return min(self._burst, left + (self._clock() - since) * self._per_s)

    def _put(self, client: str, left: float) -> None:
        self._buckets[client] = (left, self._clock())
        self._buckets.move_to_end(client)
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
