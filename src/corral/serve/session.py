"""One session: an environment, who plays in it, and what was asked and answered last."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from secrets import token_urlsafe
from typing import Any, Protocol, TypeVar

from corral.serve.close_codes import CloseCode
from corral.serve.deadlines import Deadlines
from corral.serve.faults import ServeFault, SessionEnded, StepTimeout
from corral.serve.world import World

Result = TypeVar("Result")


class Owner(StrEnum):
    """What a session lives as long as."""

    SOCKET = "socket"
    """The connection that opened it, and a lease beyond for Corral peers."""
    REQUESTS = "requests"
    """``openenv/session/close``, or the idle limit: it was created over HTTP."""


class Connection(Protocol):
    """The socket attached to a session, as far as others need it."""

    async def send(self, text: str) -> None:
        """Send a frame; a peer that is gone is no error."""
        ...

    async def end(self, fault: ServeFault | None, code: CloseCode) -> None:
        """Tell the peer why, and close."""
        ...


@dataclass(slots=True, kw_only=True, eq=False)
class Ledger:
    """The requests of a ``corral.v1`` peer, so that none is executed twice."""

    last_id: int = 0
    """The newest request seen."""
    answered_id: int = 0
    answer: str | None = None
    """The frame that answered `answered_id`."""
    inbox: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What waits for the request under way; one at most."""
    work: "asyncio.Task[None] | None" = None


@dataclass(slots=True, kw_only=True, eq=False)
class Session:
    """An environment with a lifetime of its own."""

    id: str
    world: World
    owner: Owner
    step_timeout_s: float
    deadlines: Deadlines
    token: str = field(default_factory=lambda: token_urlsafe(24), repr=False)
    created_at: float = field(default_factory=time.time)
    last_active: float = field(default_factory=time.monotonic)
    step_count: int = 0
    connection: Connection | None = None
    ledger: Ledger = field(default_factory=Ledger)
    lease: asyncio.TimerHandle | None = None
    is_closing: bool = False
    """Whether it ends when its socket detaches."""
    is_ended: bool = False
    is_hung: bool = False
    """Whether a call exceeded its limit: the thread is lost, and its slot need not wait."""
    calls_under_way: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way, or waits for one that is."""
        return self.calls_under_way > 0

    async def call(
        self,
        what: str,
        function: Callable[[World], Awaitable[Result]],
        *,
        timeout_s: float | None = None,
    ) -> Result:
        """Make one call to the environment, under the limit and after those before it.

        Raises:
            StepTimeout: It took too long; the session must be ended now.
            SessionEnded: There is no environment any more.
        """
        limit = self.step_timeout_s if timeout_s is None else min(timeout_s, self.step_timeout_s)
        self.calls_under_way += 1
        try:
            async with self.lock:
                if self.is_ended or self.is_hung:
                    raise SessionEnded("This session has ended.")
                deadline = self.deadlines.start(limit)
                try:
                    return await function(self.world)
                except asyncio.CancelledError:
                    if not deadline.is_cause():
                        raise
                    self.is_hung = True
                    raise StepTimeout(what, limit) from None
                finally:
                    self.deadlines.stop(deadline)
        finally:
            self.calls_under_way -= 1
            self.last_active = time.monotonic()
