"""The slots of a server: so many sessions at a time, and a fair queue for those who wait."""

import asyncio
from collections import deque

from corral.serve.faults import CapacityReached


class Slots:
    """Counts sessions. Who comes first is served first."""

    def __init__(self, max_sessions: int) -> None:
        self.max_sessions = max_sessions
        self.active_sessions = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def request(self) -> "asyncio.Future[None]":
        """A future that is done once a slot is yours; cancel it, or `release` the slot."""
        place = asyncio.get_running_loop().create_future()
        if self.active_sessions < self.max_sessions:
            self.active_sessions += 1
            place.set_result(None)
        else:
            self._waiting.append(place)
        return place

    def give_up(self, place: "asyncio.Future[None]") -> None:
        """Leave the queue, or hand back a slot that has come in the meantime."""
        if place.done() and not place.cancelled():
            self.release()
            return
        place.cancel()
        if place in self._waiting:
            self._waiting.remove(place)

    def release(self) -> None:
        """Give a slot back: to the first in the queue, if there is one."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self.active_sessions -= 1

    def position(self, place: "asyncio.Future[None]") -> int:
        """How many would be served up to this one, itself included."""
        return self._waiting.index(place) + 1 if place in self._waiting else 0

    def refusal(self) -> CapacityReached:
        """What those who waited in vain are told."""
        return CapacityReached(self.active_sessions, self.max_sessions)

    async def take(self, timeout_s: float) -> None:
        """Wait for a slot.

        Raises:
            CapacityReached: None became free in time.
        """
        place = self.request()
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(place)
        except TimeoutError:
            if place.done():
                return  # it came at the last moment
            self.give_up(place)
            raise self.refusal() from None
        except BaseException:
            self.give_up(place)
            raise
