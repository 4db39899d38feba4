"""All sessions of a server: opened when a slot is free, ended exactly once, reaped when idle."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import uuid4

from corral.serve.close_codes import CloseCode
from corral.serve.deadlines import Deadlines
from corral.serve.faults import ServeFault, SessionEnded, StepTimeout
from corral.serve.session import Owner, Session
from corral.serve.settings import ServeSettings
from corral.serve.slots import Slots
from corral.serve.world import World, WorldKind

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
_CLOSE_LIMIT_S = 10.0
"""After that the slot is free, whether ``close`` has returned or not."""


class Sessions:
    """The sessions of one process."""

    def __init__(self, kind: WorldKind, settings: ServeSettings) -> None:
        self.kind = kind
        self.settings = settings
        self.slots = Slots(settings.max_sessions)
        self._deadlines = Deadlines()
        self._by_id: dict[str, Session] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._reaper: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self):
        return iter(list(self._by_id.values()))

    def find(self, session_id: str) -> Session | None:
        """The session of that id, if it lives."""
        return self._by_id.get(session_id)

    async def open(self, owner: Owner) -> Session:
        """Construct an environment in a slot that the caller has taken; on failure it is freed.

        Raises:
            ServeFault: The environment could not be constructed.
        """
        limit = self.settings.step_timeout_s
        try:
            async with asyncio.timeout(limit):
                world = await self.kind.construct()
        except TimeoutError:
            self.slots.release()
            raise StepTimeout(f"Constructing {self.kind.name}", limit) from None
        except BaseException:
            self.slots.release()
            raise
        session = Session(
            id=f"s-{uuid4().hex}",
            world=world,
            owner=owner,
            step_timeout_s=limit,
            deadlines=self._deadlines,
        )
        self._by_id[session.id] = session
        self._watch()
        return session

    async def call(
        self,
        session: Session,
        what: str,
        function: Callable[[World], Awaitable[Result]],
        *,
        timeout_s: float | None = None,
    ) -> Result:
        """One call to a session's environment; a call that hangs ends the session.

        Raises:
            ServeFault: What the peer is to be told.
        """
        try:
            return await session.call(what, function, timeout_s=timeout_s)
        except StepTimeout:
            await self.end(session)
            raise

    async def once(self, what: str, function: Callable[[World], Awaitable[Result]]) -> Result:
        """Make an environment, call it once and close it. It takes no slot.

        Raises:
            ServeFault: What the peer is to be told.
        """
        world = await self.kind.construct()
        session = Session(
            id="",
            world=world,
            owner=Owner.REQUESTS,
            step_timeout_s=self.settings.step_timeout_s,
            deadlines=self._deadlines,
        )
        try:
            return await session.call(what, function)
        finally:
            closing = self._spawn(self._close_world(session))
            if not session.is_hung:
                await asyncio.shield(closing)

    async def end(self, session: Session) -> None:
        """Close the environment and free the slot. Only the first call does anything.

        What is closed is closed when this returns, unless a call is still under way.
        """
        if session.is_ended:
            return
        session.is_ended = True
        self._by_id.pop(session.id, None)
        self.release_lease(session)
        closing = self._spawn(self._close(session))
        if not (session.is_hung or session.is_busy):
            await asyncio.shield(closing)

    async def end_with(self, session: Session, fault: ServeFault, code: CloseCode) -> None:
        """End a session, and tell the socket attached to it."""
        connection, session.connection = session.connection, None
        await self.end(session)
        if connection is not None:
            await connection.end(fault, code)

    def start_lease(self, session: Session) -> None:
        """Let a session without a connection live for a while, until a client re-attaches."""
        self.release_lease(session)
        loop = asyncio.get_running_loop()
        session.lease = loop.call_later(self.settings.lease_s, self._lease_over, session)

    def release_lease(self, session: Session) -> None:
        """A client is back, or nobody waits for one."""
        if session.lease is not None:
            session.lease.cancel()
            session.lease = None

    async def end_all(self) -> None:
        """End every session: the server stops."""
        if self._reaper is not None:
            self._reaper.cancel()
            self._reaper = None
        fault = SessionEnded("The server is shutting down.")
        await asyncio.gather(*(self.end_with(session, fault, CloseCode.FAILED) for session in self))
        if self._background:
            await asyncio.wait(self._background, timeout=_CLOSE_LIMIT_S)
        self._deadlines = Deadlines()  # the next loop that serves this has timers of its own

    async def _close(self, session: Session) -> None:
        if session.is_hung:
            self.slots.release()
            await self._close_world(session)
            return
        try:
            await self._close_world(session)
        finally:
            self.slots.release()

    async def _close_world(self, session: Session) -> None:
        world = session.world
        if session.is_hung:
            getattr(world, "abandon", lambda: None)()
            await world.close()  # when the thread comes back, if ever
            return
        try:
            async with session.lock:  # a call under way has its own limit
                async with asyncio.timeout(_CLOSE_LIMIT_S):
                    await world.close()
        except TimeoutError:
            logger.warning(
                "close of %s took longer than %g s; its slot is free, its thread is not",
                self.kind.name,
                _CLOSE_LIMIT_S,
            )

    def _lease_over(self, session: Session) -> None:
        session.lease = None
        if session.connection is not None or session.is_ended:
            return
        if session.is_busy:  # it may still finish within its limit
            self.start_lease(session)
            return
        logger.info("session %s: nobody came back within its lease", session.id)
        self._spawn(self.end(session))

    def _watch(self) -> None:
        if self.settings.idle_timeout_s and (self._reaper is None or self._reaper.done()):
            self._reaper = asyncio.get_running_loop().create_task(self._reap())

    async def _reap(self) -> None:
        limit = self.settings.idle_timeout_s
        while self._by_id:
            await asyncio.sleep(min(max(limit / 4, 0.02), 5.0))
            oldest = time.monotonic() - limit
            for session in self:
                if not session.is_busy and session.last_active < oldest:
                    logger.info("session %s was idle for %g s", session.id, limit)
                    fault = SessionEnded(f"The session was idle for {limit:g} s and was ended.")
                    self._spawn(self.end_with(session, fault, CloseCode.IDLE))

    def _spawn(self, coroutine) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(coroutine)
        self._background.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: "asyncio.Task[None]") -> None:
        self._background.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("ending a session failed", exc_info=task.exception())
