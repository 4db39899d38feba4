"""The environments of a player: constructed once, reset for every episode."""

import asyncio
import logging

from corral.env import EnvironmentKind, Home, close
from corral.env.threads import run_in_thread

_logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 10.0
"""An environment that failed may well hang when it is closed; the others must not wait for it."""


class EnvironmentPool:
    """The instances of one kind of environment, one for each seat.

    The i-th episode of a kind always plays in the instance on seat i. Instances are constructed
    when a seat is taken for the first time, one after another in the order of taking, so that a
    factory is called exactly as often as there are concurrent episodes and need not be
    thread-safe. An instance is constructed and called in one thread (see `corral.env.Home`).
    """

    def __init__(self, kind: EnvironmentKind) -> None:
        self._kind = kind
        self._homes: dict[int, Home] = {}
        self._worn: set[int] = set()
        self._construction: asyncio.Future[None] | None = None

    async def take(self, seat: int, *, turn: asyncio.Lock) -> Home:
        """The instance on a seat, constructed if there is none.

        Args:
            turn: Held while constructing. It belongs to the caller's event loop, which this object
                outlives.
        """
        async with turn:
            if seat in self._worn:
                await self.discard(seat)
            if seat not in self._homes:
                # Shielded: a thread cannot be cancelled, and what it makes must be closed one day.
                self._construction = asyncio.ensure_future(self._construct(seat))
                await asyncio.shield(self._construction)
                self._construction = None
            return self._homes[seat]

    def wear_out(self, seat: int) -> None:
        """Have the instance replaced before its next episode; a call may still be running in it."""
        self._worn.add(seat)

    async def discard(self, seat: int) -> None:
        """Close the instance on a seat and leave the seat empty."""
        home = self._homes.pop(seat, None)
        self._worn.discard(seat)
        if home is None:
            return
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await close(home.instance, executor=home.free_thread())
        except TimeoutError:
            _logger.warning(
                "%s.close took longer than %g s; leaving it behind.",
                type(home.instance).__name__,
                CLOSE_TIMEOUT_S,
            )
        finally:
            home.leave()

    async def aclose(self) -> None:
        """Close every instance; the pool may be used again and then constructs new ones."""
        if self._construction is not None:
            await asyncio.gather(self._construction, return_exceptions=True)
            self._construction = None
        for seat in list(self._homes):
            await self.discard(seat)

    async def _construct(self, seat: int) -> None:
        self._homes[seat] = await run_in_thread(self._kind.construct)
