"""A session with a server: one request at a time, and never a new game in silence."""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from corral.errors import UsageError
from corral.serve.client.address import Address
from corral.serve.client.connection import ConnectionLost, Frame, now, open_connection
from corral.serve.client.errors import (
    FATAL_CODES,
    ActionError,
    CapacityError,
    ClientClosedError,
    ExecutionError,
    FactoryError,
    MessageTooLargeError,
    ProtocolError,
    RemoteError,
    ServerUnreachableError,
    SessionLostError,
    error_from_data,
)
from corral.serve.client.options import ClientOptions
from corral.serve.client.plain import PlainLink
from corral.serve.client.replay import EpisodeLog, ReplayDiffersError
from corral.serve.client.resumable import ResumableLink, greet

_ANSWER_TYPES = {"reset": "observation", "step": "observation", "state": "state", "mcp": "mcp"}
_LONGEST_PAUSE_S = 1.0
_MAX_REPLAYS = 3


class Link(Protocol):
    """A session at the server, however it is reached."""

    @property
    def is_lost(self) -> bool:
        """Whether it is over."""
        ...

    async def request(self, frame: Frame, *, deadline: float) -> Frame:
        """Have a request executed once and return its answer."""
        ...

    async def end(self) -> None:
        """Say good-bye."""
        ...

    def drop(self) -> None:
        """Give it up at once."""
        ...


class Session:
    """What a client talks through. All methods run on one event loop.

    Whatever happens, an answer reaches the request it belongs to or nobody, and a request other
    than ``reset`` runs in the session that was last reset or raises `SessionLostError`.
    """

    def __init__(self, address: Address, options: ClientOptions) -> None:
        self._address = address
        self._options = options
        self._lock = asyncio.Lock()
        self._link: Link | None = None
        self._lost: str | None = None
        """Why there is no session to go on with; None too where there was none yet."""
        self._is_closed = False
        self._log: EpisodeLog | None = None
        self.replays = 0

    @property
    def is_resumable(self) -> bool:
        """Whether the server of the present session knows how to resume."""
        return isinstance(self._link, ResumableLink)

    async def connect(self) -> None:
        """Open the connection, if there is none; with ``corral.v1`` also the session."""
        async with self._lock:
            self._refuse_if_closed()
            if self._link is None:
                self._link = await self._open(now() + self._options.queue_timeout_s)

    async def request(
        self, kind: str, data: Mapping[str, Any] | None = None, *, timeout_s: float | None = None
    ) -> Any:
        """Have a request executed and return its answer's ``data``.

        Args:
            timeout_s: How long the answer may take; ``message_timeout_s`` by default.

        Raises:
            RemoteError: The server answered with an error; the session goes on.
            SessionLostError: There is no session (any more) in which this request has a meaning.
            RequestTimeoutError: No answer in time; the session is given up.
        """
        async with self._lock:
            self._refuse_if_closed()
            frame: Frame = {"type": kind}
            if data is not None:
                frame["data"] = dict(data)
            if timeout_s is not None:
                if not timeout_s > 0:
                    raise UsageError(f"timeout_s={timeout_s!r} must be more than 0.")
                if kind == "step":
                    frame["timeout_s"] = timeout_s
            limit_s = timeout_s or self._options.message_timeout_s
            answer = await self._carry(frame, limit_s)
        expected = _ANSWER_TYPES[kind]
        if answer.get("type") != expected:
            raise ProtocolError(
                f"The server answered {kind!r} with {answer.get('type')!r} instead of {expected!r}."
            )
        return answer.get("data")

    async def disconnect(self) -> None:
        """End the session and free its slot; ``reset`` opens another one."""
        if self._lock.locked():
            await self._end()  # a request is under way: it is told that the session is over
        else:
            async with self._lock:
                await self._end()

    async def close(self) -> None:
        """End the session for good."""
        self._is_closed = True
        await self.disconnect()

    async def _end(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            self._lost = "The client was disconnected; start another session with reset()."
            await link.end()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise ClientClosedError("This client was closed. Make another one.")

    async def _carry(self, frame: Frame, limit_s: float) -> Frame:
        link = self._link
        if frame["type"] == "reset":
            if link is not None and not link.is_lost:
                try:
                    return await self._ask(link, frame, limit_s)
                except (SessionLostError, CapacityError):
                    self._refuse_if_closed()  # else it had died unnoticed, and may start anew
            return await self._ask_anew(frame, limit_s)
        if link is not None:
            try:
                return await self._ask(link, frame, limit_s)
            except CapacityError:
                self._refuse_if_closed()  # a plain server tells with the first answer
        if self._lost is not None:
            raise SessionLostError(self._lost)
        return await self._ask_anew(frame, limit_s)

    async def _ask_anew(self, frame: Frame, limit_s: float) -> Frame:
        """Ask in a new session; a full server is asked again until ``queue_timeout_s``."""
        until = now() + self._options.queue_timeout_s
        pause_s = 0.05
        self._log = None
        while True:
            try:
                link = await self._open(until)
                return await self._ask(link, frame, limit_s)
            except CapacityError:
                # A plain server says only at the first request that it has no slot.
                if now() + pause_s >= until:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _ask(self, link: Link, frame: Frame, limit_s: float) -> Frame:
        self._link = link
        try:
            answer = await self._answer(link, frame, limit_s)
            if answer.get("type") == "error":
                raise error_from_data(answer.get("data"))
        except BaseException as error:
            if not _leaves_session(error, self._link):
                self._give_up(error)
            raise
        if frame["type"] == "reset":
            self._lost = None
        return answer

    async def _answer(self, link: Link, frame: Frame, limit_s: float) -> Frame:
        try:
            answer = await link.request(frame, deadline=now() + limit_s)
        except SessionLostError as lost:
            if frame["type"] == "reset" or self._log is None or self._is_closed:
                raise
            answer = await self._replay(frame, limit_s, lost)
        link = self._link or link
        if isinstance(link, ResumableLink) and link.is_replayable:
            if self._log is None and frame["type"] == "reset":
                self._log = EpisodeLog()
            if self._log is not None:
                self._log.add(frame, answer)
        else:
            self._log = None
        return answer

    async def _replay(self, frame: Frame, limit_s: float, lost: SessionLostError) -> Frame:
        """Play the episode again in a new session, then make the request that waits."""
        log = self._log
        assert log is not None
        for _ in range(_MAX_REPLAYS):
            link = await self._open_again(now() + self._options.queue_timeout_s)

            async def ask(again: Frame, link: Link = link) -> Frame:
                return await link.request(again, deadline=now() + limit_s)

            self._link = link
            try:
                if not (isinstance(link, ResumableLink) and link.is_replayable):
                    raise ReplayDiffersError(f"{lost} The server cannot replay it.")
                self.replays += 1
                await log.repeat(ask)
                return await ask(frame)
            except ReplayDiffersError:
                raise
            except SessionLostError as again:
                link.drop()
                lost = again
        raise lost

    async def _open_again(self, until: float) -> Link:
        """Open a session on a server that was there a moment ago, and may be starting again."""
        pause_s = 0.05
        while True:
            try:
                return await self._open(until)
            except ServerUnreachableError:
                if now() + pause_s >= until:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _open(self, until: float) -> Link:
        """Connect, and open a session where the server tells when it has a slot."""
        while True:
            connection = await open_connection(self._address, self._options)
            if not connection.has_resume:
                return PlainLink(connection, self._options)
            try:
                # Even with a free slot the hello takes a round trip and a constructor.
                greeted_by = now() + self._options.connect_timeout_s
                hello = await greet(connection, deadline=greeted_by, queue_until=until)
                return ResumableLink(self._address, self._options, connection, hello)
            except ConnectionLost as ended:
                connection.drop()
                if now() >= until:
                    raise ServerUnreachableError(
                        f"{self._address} closed the connection before it opened a session: {ended}"
                    ) from ended
                await asyncio.sleep(0.1)
            except BaseException:
                connection.drop()
                raise

    def _give_up(self, error: BaseException) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.drop()
        self._log = None
        if isinstance(error, CapacityError | FactoryError):
            return  # there was no session that could be lost
        if isinstance(error, SessionLostError):
            self._lost = str(error)
        else:
            self._lost = (
                f"The session was given up after {type(error).__name__}: {error or 'interrupted'} "
                "Start another one with reset()."
            )


def _leaves_session(error: BaseException, link: Link | None) -> bool:
    """Whether request and answer are still in step after ``error``."""
    if isinstance(error, UsageError) or link is None:
        return isinstance(error, UsageError) and not isinstance(error, ClientClosedError)
    if isinstance(error, MessageTooLargeError):
        return isinstance(link, ResumableLink)
    if isinstance(error, ActionError | ExecutionError):
        return True
    return isinstance(error, RemoteError) and error.code not in FATAL_CODES
