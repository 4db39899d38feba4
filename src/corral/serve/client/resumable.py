"""A session that outlives its connections: ``corral.v1``, as ``docs/protocol.md`` describes it."""

import asyncio
import contextlib
import logging
import random
from dataclasses import dataclass
from typing import Any

from corral.errors import CorralError
from corral.serve.client.address import Address
from corral.serve.client.connection import (
    Connection,
    ConnectionLost,
    Frame,
    encode,
    now,
    open_connection,
)
from corral.serve.client.errors import (
    CapacityError,
    ProtocolError,
    ServerUnreachableError,
    SessionLostError,
    error_from_data,
)
from corral.serve.client.options import ClientOptions
from corral.serve.client.plain import session_lost, timed_out
from corral.serve.close_codes import CloseCode

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0
LONGEST_SILENCE_S = 15.0
"""Between two retransmissions of a request that takes long."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a server says about a session when it is opened or re-attached."""

    session_id: str
    token: str
    lease_s: float
    is_replayable: bool
    last_id: int
    max_sessions: int | None
    active_sessions: int | None

    @classmethod
    def read(cls, frame: Frame, *, before: "Hello | None" = None) -> "Hello":
        """Read a ``hello`` frame; a re-attached session keeps what is not said again.

        Raises:
            ProtocolError: Something is missing.
        """
        data: Any = frame.get("data")
        try:
            return cls(
                session_id=str(data["session_id"]),
                token=str(data.get("token") or (before.token if before else "")),
                lease_s=float(data.get("lease_s", before.lease_s if before else 60.0)),
                is_replayable=bool(data.get("is_replayable", False)),
                last_id=int(data.get("last_id", 0)),
                max_sessions=data.get("max_sessions"),
                active_sessions=data.get("active_sessions"),
            )
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ProtocolError(f"The server's hello is incomplete: {error!r}") from error


async def greet(connection: Connection, *, deadline: float, queue_until: float) -> Hello:
    """Wait for the session on a fresh connection.

    Args:
        deadline: When the server must have said something.
        queue_until: When to stop waiting for a slot.

    Raises:
        CapacityError: No slot came free in time.
        ConnectionLost: The connection ended first.
    """
    queued: dict[str, Any] = {}
    while True:
        frame = await connection.receive(deadline=queue_until if queued else deadline)
        if frame is None:
            raise _no_slot(queued)
        if frame.get("type") == "hello":
            return Hello.read(frame)
        if frame.get("type") == "error":
            raise error_from_data(frame.get("data"))
        if frame.get("type") == "queued" and isinstance(frame.get("data"), dict):
            queued = frame["data"]
            _logger.info("Waiting for a slot of the server: %s", queued)


def _no_slot(queued: dict[str, Any]) -> Exception:
    if not queued:
        return ServerUnreachableError("The server accepted the connection but opened no session.")
    active, slots = queued.get("active_sessions"), queued.get("max_sessions")
    return CapacityError(
        f"No slot came free in time (queue_timeout_s): {active} of {slots} sessions are active.",
        code="CAPACITY_REACHED",
        details=queued,
    )


class ResumableLink:
    """One session: numbered requests, sent again until answered, on whatever connection there is.

    A connection that breaks, or falls silent and answers no ping, is replaced at once, also while
    nobody asks for anything: the server keeps a session without a connection only for its lease.
    """

    def __init__(
        self, address: Address, options: ClientOptions, connection: Connection, hello: Hello
    ) -> None:
        self._address = address
        self._options = options
        self._connection = connection
        self._hello = hello
        self._last_id = 0
        self._last_answered = 0
        self._is_ending = False
        self._attaching: asyncio.Task[None] | None = None
        self._lost: Exception | None = None
        """Why the session is over for good."""
        self.reattachments = 0
        connection.on_lost = self._ended

    @property
    def is_replayable(self) -> bool:
        """Whether the world may be played again from its last reset."""
        return self._hello.is_replayable

    @property
    def is_lost(self) -> bool:
        """Whether the session is over for good."""
        return self._lost is not None

    async def request(self, frame: Frame, *, deadline: float) -> Frame:
        """Have a request executed exactly once, and return its answer.

        Raises:
            SessionLostError: The server does not have the session any more, or was out of reach for
                longer than the lease.
            RequestTimeoutError: No answer came in time.
            MessageTooLargeError: One side does not take a frame of this size.
        """
        number = self._last_id + 1
        text = encode({**frame, "id": number})
        self._last_id = number
        patience_s = self._options.liveness_timeout_s
        while True:
            connection = await self._attached(frame, deadline)
            try:
                answer = await self._ask(connection, frame, text, number, deadline, patience_s)
                self._last_answered = number
                return answer
            except ConnectionLost as lost:
                if self._is_ending:
                    raise SessionLostError("The client was closed.") from None
                if lost.code == CloseCode.TOO_LARGE:
                    if not lost.closed_by_us:
                        self._last_id -= 1  # the server never saw it
                    raise session_lost(lost) from None
                patience_s *= 2  # a server with too much to do is not helped by more connections
                if connection is self._connection:
                    connection.drop()
                    self._ended(lost)

    async def end(self) -> None:
        """Say good-bye, which frees the slot, and close."""
        self._is_ending = True
        deadline = now() + self._options.close_timeout_s
        task = self._attaching
        if task is not None and not task.done():
            await asyncio.wait({task}, timeout=self._options.close_timeout_s)
            task.cancel()
        self._connection.on_lost = None
        while not self.is_lost and now() < deadline and not await self._is_goodbye_heard(deadline):
            try:
                await self._attach_once(deadline)
            except (ServerUnreachableError, ConnectionLost, ProtocolError, TimeoutError):
                await asyncio.sleep(FIRST_PAUSE_S)
            except SessionLostError:
                break  # what was to be freed is free
        await self._connection.close(max(0.1, deadline - now()))

    async def _is_goodbye_heard(self, deadline: float) -> bool:
        """Say good-bye on the connection there is; whether the server confirmed it."""
        connection = self._connection
        text = encode({"type": "close", "id": self._last_id + 1})
        with contextlib.suppress(ConnectionLost, TimeoutError):
            await connection.send(text, deadline=deadline)
            # On a half-open connection nothing ever comes; leave time for another one.
            await connection.wait_closed(max(0.1, (deadline - now()) / 2))
        return connection.closing_code == CloseCode.GOOD_BYE

    def drop(self) -> None:
        """Give the session up; the server is told, if that works at once."""
        if not self._is_ending:
            self._is_ending = True
            self._connection.on_lost = None
            _in_background(self._say_goodbye())

    async def _say_goodbye(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await self.end()

    async def _ask(
        self,
        connection: Connection,
        frame: Frame,
        text: str,
        number: int,
        deadline: float,
        patience_s: float,
    ) -> Frame:
        pause = self._options.retransmit_after_s
        while True:
            try:
                await connection.send(text, deadline=deadline)
            except TimeoutError:
                raise timed_out(frame) from None
            answer = await self._answer(connection, number, min(deadline, now() + pause))
            if answer is not None:
                return answer
            if now() >= deadline:
                raise timed_out(frame)
            if not await connection.is_alive(patience_s):
                raise ConnectionLost(None, "no answer to a ping")
            answer = await self._answer(connection, number, now())
            if answer is not None:
                return answer
            pause = min(2 * pause, LONGEST_SILENCE_S)

    async def _answer(self, connection: Connection, number: int, deadline: float) -> Frame | None:
        """The answer to request ``number``; whatever else arrives is old, or said twice."""
        while True:
            try:
                answer = await connection.receive(deadline=deadline)
            except ProtocolError as error:
                raise ConnectionLost(None, str(error)) from error
            if answer is None or answer.get("id") == number:
                return answer
            _logger.debug("Ignored while waiting for answer %d: %.200r", number, answer)

    async def _attached(self, frame: Frame, deadline: float) -> Connection:
        if self._is_ending:
            raise SessionLostError("The client was closed.")
        if self._connection.is_lost and not self._connection.has_unread:
            self._attach_again()
        task = self._attaching
        if task is not None:
            await asyncio.wait({task}, timeout=max(0.0, deadline - now()))
            if not task.done():
                raise timed_out(frame)
        if self._lost is not None:
            raise self._lost
        return self._connection

    def _ended(self, lost: ConnectionLost) -> None:
        """Have the connection replaced, unless the server has ended the session with it."""
        _logger.info("Session %s: %s; attaching again.", self._hello.session_id, lost)
        reason = self._over(lost)
        if reason is None:
            self._attach_again()
        else:
            self._lost = SessionLostError(reason)

    def _attach_again(self) -> None:
        task = self._attaching
        if self._is_ending or (task is not None and not task.done()) or self.is_lost:
            return
        self._attaching = asyncio.create_task(self._attach())

    async def _attach(self) -> None:
        try:
            await self._attach_within_lease()
        except CorralError as error:
            self._lost = error

    async def _attach_within_lease(self) -> None:
        """Attach over a new connection, as often as it takes within the lease."""
        until = now() + self._hello.lease_s
        pause = FIRST_PAUSE_S
        self._connection.drop()
        while True:
            try:
                await self._attach_once(until)
            except (ServerUnreachableError, ConnectionLost, ProtocolError, TimeoutError) as error:
                reason = self._over(error)
                if reason is not None:
                    raise SessionLostError(reason) from error
                if now() + pause >= until:
                    raise SessionLostError(
                        f"The session was lost: the server was out of reach for its lease of "
                        f"{self._hello.lease_s:g} s. Last: {error}"
                    ) from error
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(2 * pause, LONGEST_PAUSE_S)
            else:
                return

    async def _attach_once(self, until: float) -> None:
        limit = max(0.1, min(self._options.connect_timeout_s, until - now()))
        deadline = now() + limit
        session_id = self._hello.session_id
        connection = await open_connection(
            self._address, self._options, timeout_s=limit, session_id=session_id
        )
        try:
            if not connection.has_resume:
                raise SessionLostError("The session was lost: another server is there now.")
            await self._present(connection, deadline)
        except BaseException:
            connection.drop()
            raise
        self._connection = connection
        self.reattachments += 1
        if not self._is_ending:
            connection.on_lost = self._ended
        if connection.is_lost:  # between the hello and here
            raise ConnectionLost(None, "lost again at once")

    async def _present(self, connection: Connection, deadline: float) -> None:
        """Say whose connection this is, and hear that the server agrees."""
        data = {"session_id": self._hello.session_id, "token": self._hello.token}
        await connection.send(encode({"type": "attach", "data": data}), deadline=deadline)
        while True:
            frame = await connection.receive(deadline=deadline)
            if frame is None:
                raise TimeoutError("the server did not answer the attach")
            if frame.get("type") == "error" and "id" not in frame:
                error = error_from_data(frame.get("data"))
                raise error if isinstance(error, SessionLostError) else ProtocolError(str(error))
            if frame.get("type") == "hello":
                hello = Hello.read(frame, before=self._hello)
                if hello.session_id != self._hello.session_id or hello.last_id > self._last_id:
                    raise SessionLostError("The session was lost: the server answers for another.")
                if hello.last_id < self._last_answered:
                    raise SessionLostError("The session was lost: the server forgot its steps.")
                self._hello = hello
                return

    def _over(self, error: Exception) -> str | None:
        """Why the session is over for good, if ``error`` says that it is."""
        code = error.code if isinstance(error, ConnectionLost) else None
        told: dict[int | None, str] = {
            CloseCode.TAKEN_OVER: "another connection took it over",
            CloseCode.LOST: "the server does not have it any more",
            CloseCode.IDLE: "it was idle for too long, and the server ended it",
            CloseCode.WRONG_TOKEN: "the server wants another token",
        }
        return f"The session was lost: {told[code]}." if code in told else None


_goodbyes: set[asyncio.Task[None]] = set()


def _in_background(work: Any) -> None:
    task = asyncio.create_task(work)
    _goodbyes.add(task)  # the loop itself holds tasks only weakly
    task.add_done_callback(_goodbyes.discard)
