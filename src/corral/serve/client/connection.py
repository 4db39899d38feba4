"""One WebSocket to a server: frames in and out, each wait with a deadline.

A task of its own reads the socket as long as it lives and puts what arrives into an inbox. Whoever
waits for a frame waits for the inbox, so that no time limit ever cuts through a read.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.typing import Subprotocol

from corral.env.content import for_json
from corral.errors import UsageError
from corral.records.images import is_picture
from corral.serve.client.address import Address
from corral.serve.client.errors import (
    AuthenticationError,
    ProtocolError,
    ServerUnreachableError,
)
from corral.serve.client.options import ClientOptions

SUBPROTOCOL = "corral.v1"
MAX_UNREAD_FRAMES = 1000
"""A peer that talks without being asked is cut off."""

_TURNS_TO_READ = 5
"""Turns of the event loop from bytes in the socket to a frame in the inbox."""

_logger = logging.getLogger(__name__)

Frame = dict[str, Any]


class ConnectionLost(Exception):
    """The socket is closed, and everything that had arrived has been read.

    An event of this package; what users are told depends on what the connection carried.
    """

    def __init__(self, code: int | None, reason: str, *, closed_by_us: bool = False) -> None:
        super().__init__(f"connection closed ({code or 'no code'}{': ' * bool(reason)}{reason})")
        self.code = code
        self.closed_by_us = closed_by_us


def now() -> float:
    """The time that deadlines are given in."""
    return asyncio.get_running_loop().time()


class Connection:
    """An open WebSocket; made by :func:`open_connection`."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._inbox: deque[Frame | ProtocolError] = deque()
        self._arrival: asyncio.Future[None] | None = None
        self._lost: ConnectionLost | None = None
        self.on_lost: Callable[[ConnectionLost], None] | None = None
        """Called once when the connection ends without having been dropped."""
        self._reader = asyncio.create_task(self._read())

    @property
    def has_resume(self) -> bool:
        """Whether the server selected ``corral.v1``."""
        return self._socket.subprotocol == SUBPROTOCOL

    @property
    def is_lost(self) -> bool:
        """Whether nothing more can be sent; frames may still be in the inbox."""
        return self._lost is not None

    @property
    def closing_code(self) -> int | None:
        """The code the connection was closed with; None while it is open or without one."""
        return self._lost.code if self._lost is not None else None

    @property
    def has_unread(self) -> bool:
        """Whether the server said something that nobody has read."""
        return bool(self._inbox)

    async def send(self, text: str, *, deadline: float) -> None:
        """Send one text frame.

        Raises:
            ConnectionLost: The socket is closed.
            TimeoutError: The peer does not take it; the connection is of no more use.
        """
        try:
            async with asyncio.timeout_at(deadline):
                await self._socket.send(text)
        except ConnectionClosed as closed:
            raise _lost(closed) from None

    async def receive(self, *, deadline: float) -> Frame | None:
        """The next frame; None when the deadline passed without one.

        Raises:
            ConnectionLost: The socket is closed and the inbox is empty.
            ProtocolError: The frame is no JSON object.
        """
        while not self._inbox:
            if self._lost is not None:
                raise self._lost
            if not await self._wait_for_arrival(deadline - now()):
                return None
        frame = self._inbox.popleft()
        if isinstance(frame, ProtocolError):
            raise frame
        return frame

    async def is_alive(self, timeout_s: float) -> bool:
        """Whether the peer answers a ping, or anything else arrives, in that time."""
        if self._lost is not None:
            return False
        try:
            async with asyncio.timeout(timeout_s):
                pong = asyncio.ensure_future(await self._socket.ping())
        except (ConnectionClosed, TimeoutError):
            return False
        arrival = self._next_arrival()
        await asyncio.wait(
            {pong, arrival},
            timeout=timeout_s,
            return_when=asyncio.FIRST_COMPLETED,
        )
        await _catch_up(lambda: pong.done() or self.has_unread)
        if pong.done() and not pong.cancelled() and pong.exception() is not None:
            return False
        return self._lost is None and (pong.done() or self.has_unread)

    async def wait_closed(self, timeout_s: float) -> bool:
        """Wait for the server to close; whether it did."""
        await asyncio.wait({self._reader}, timeout=timeout_s)
        return self._reader.done()

    async def close(self, timeout_s: float) -> None:
        """Close with a handshake, or without one when that takes too long."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._socket.close()
        except TimeoutError:
            pass
        self.drop()

    def drop(self) -> None:
        """Cut the connection at once; whatever the server still says reaches nobody."""
        self.on_lost = None
        self._inbox.clear()
        if self._lost is None:
            self._lost = ConnectionLost(None, "given up", closed_by_us=True)
        self._socket.transport.abort()
        self._tell_arrival()

    async def _read(self) -> None:
        lost = ConnectionLost(None, "")
        try:
            async for text in self._socket:
                if self._lost is not None:
                    return
                if len(self._inbox) >= MAX_UNREAD_FRAMES:
                    lost = ConnectionLost(None, "the server sent frames nobody asked for")
                    self._socket.transport.abort()
                    break
                self._inbox.append(_decode(text))
                self._tell_arrival()
            else:
                lost = _ended(self._socket)
        except ConnectionClosed as closed:
            lost = _lost(closed)
        finally:
            if self._lost is None:
                self._lost = lost
            self._tell_arrival()
            if self.on_lost is not None:
                told, self.on_lost = self.on_lost, None
                told(self._lost)

    def _next_arrival(self) -> "asyncio.Future[None]":
        if self._arrival is None or self._arrival.done():
            self._arrival = asyncio.get_running_loop().create_future()
        return self._arrival

    def _tell_arrival(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    async def _wait_for_arrival(self, timeout_s: float) -> bool:
        arrival = self._next_arrival()
        if timeout_s > 0:
            await asyncio.wait({arrival}, timeout=timeout_s)
        await _catch_up(arrival.done)
        return arrival.done()


async def _catch_up(is_there: Callable[[], bool]) -> None:
    """Let a busy event loop read what the network has delivered, before calling it late.

    With thousands of connections a loop may be seconds behind; its timers then fire first.
    """
    for _ in range(_TURNS_TO_READ):
        if is_there():
            return
        await asyncio.sleep(0)


async def open_connection(
    address: Address, options: ClientOptions, *, timeout_s: float | None = None, **query: str
) -> Connection:
    """Open a WebSocket to a server's ``/ws``.

    Raises:
        ServerUnreachableError: There is no server, or it does not speak WebSocket.
        AuthenticationError: It wants a token, or another one.
    """
    timeout_s = options.connect_timeout_s if timeout_s is None else timeout_s
    try:
        async with asyncio.timeout(timeout_s):
            socket = await _handshake(address, options, query)
    except TimeoutError as error:
        raise ServerUnreachableError(
            f"No connection to {address} within {timeout_s:g} s (connect_timeout_s)."
        ) from error
    except InvalidStatus as error:
        raise _refusal(address, error) from error
    except (OSError, InvalidHandshake, EOFError) as error:
        raise ServerUnreachableError(
            f"No connection to {address}: {error or type(error).__name__}. Is the server running?"
        ) from error
    return Connection(socket)


async def _handshake(address: Address, options: ClientOptions, query: dict[str, str]) -> Any:
    return await connect(
        address.websocket("/ws", **query),
        subprotocols=[Subprotocol(SUBPROTOCOL)] if options.offers_resume else None,
        additional_headers=options.all_headers(),
        proxy=None if address.is_local else True,
        compression=None,  # frames are small, and each connection would keep two windows
        open_timeout=None,
        close_timeout=options.close_timeout_s,
        max_size=options.max_message_bytes,
        ping_interval=options.ping_interval_s,
        ping_timeout=options.ping_timeout_s,
    )


def _refusal(address: Address, error: InvalidStatus) -> Exception:
    status = error.response.status_code
    if status in (401, 407):
        return AuthenticationError(
            f"{address} refused the connection (HTTP {status}). Give its token: token='...'"
        )
    if status in (403, 404):
        return ServerUnreachableError(
            f"{address} has no WebSocket at /ws (HTTP {status}). Check the URL and its prefix."
        )
    return ServerUnreachableError(f"{address} refused the connection (HTTP {status}).")


def encode(frame: Frame) -> str:
    """A frame as text.

    Raises:
        UsageError: Something in it cannot be written as JSON.
    """
    try:
        return json.dumps(frame, ensure_ascii=False, allow_nan=False, default=_as_json)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"The arguments of {frame.get('type')!r} cannot be written as JSON: {error}"
        ) from error


def _as_json(value: object) -> Any:
    if is_picture(value):
        return for_json(value)
    if hasattr(value, "tolist"):  # an array library's number or array
        return cast("Any", value).tolist()
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(value)
    except PydanticSerializationError as error:
        raise TypeError(str(error)) from None


def _decode(text: str | bytes) -> Frame | ProtocolError:
    try:
        frame: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        return ProtocolError(f"The server sent a frame that is no JSON: {error}")
    if isinstance(frame, dict):
        return cast("Frame", frame)
    return ProtocolError(f"The server sent {type(frame).__name__} where a JSON object belongs.")


def _lost(closed: ConnectionClosed) -> ConnectionLost:
    if closed.rcvd is not None and closed.rcvd_then_sent is not False:
        return ConnectionLost(closed.rcvd.code, closed.rcvd.reason)
    if closed.sent is not None:
        return ConnectionLost(closed.sent.code, closed.sent.reason, closed_by_us=True)
    return ConnectionLost(None, "without good-bye")


def _ended(socket: ClientConnection) -> ConnectionLost:
    """The end of an iteration over frames, which hides the two ordinary close codes."""
    return ConnectionLost(socket.close_code, socket.close_reason or "")
