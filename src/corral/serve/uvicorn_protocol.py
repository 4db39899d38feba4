"""uvicorn's WebSocket protocol with a short way for what nearly every message is: one small frame.

uvicorn hands each frame through a parser made for all cases, and stops reading from the socket
after each (two system calls) until the application asks for the next. Here text frames that come
whole are unmasked and queued at once, and answers are framed and written at once. Everything else
(the handshake, fragments, pings, closes, compressed frames, violations) takes uvicorn's own way,
which sees whole frames only, so that both ways agree on where a frame begins.
"""

import asyncio
import socket
import struct
from collections import deque
from typing import Any, Final, cast

from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

try:
    from websockets.speedups import apply_mask
except ImportError:  # a platform without the compiled one
    from websockets.utils import apply_mask

_MAX_WAITING: Final = 16
"""Messages; only then is the client made to wait."""
_READ_BYTES: Final = 2**16
_WHOLE_TEXT: Final = 0x81
_MASKED: Final = 0x80
_SHORT, _MEDIUM = 126, 127


class PromptHttpProtocol(AutoHTTPProtocol):
    """An HTTP connection of uvicorn made for small messages.

    Small writes are sent at once: with several workers the listening socket does not name its
    protocol, and asyncio then leaves Nagle's delay on, 40 ms for every answer. And small buffers
    are read into: asyncio takes 256 KB for every read, which the allocator maps and unmaps anew
    each time; that costs more than all else there is to reading.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set the transport up."""
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(transport, "max_size"):  # asyncio's; other loops have their own ways
            cast("Any", transport).max_size = _READ_BYTES
        super().connection_made(transport)


class QuickWebSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket connection of uvicorn."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.queue = cast("asyncio.Queue[Any]", _Queue(self.loop))
        self._received = bytearray()
        """The beginning of a frame, once frames are taken apart here."""
        self._is_framed = False
        self._is_early = False
        """Whether the client sent frames before it was accepted; then uvicorn has them."""

    def data_received(self, data: bytes) -> None:
        """Take frames apart."""
        if not self._is_framed:
            self._is_early = self._is_early or self.handshake_initiated
            super().data_received(data)
            self._is_early = self._is_early or bool(self.conn.reader.buffer)
            return
        received = self._received
        received += data
        while len(received) >= 2:
            start, length = _payload(received)
            if start == 0:
                return  # the length itself is still to come
            end = start + length
            is_wrong = length > self.config.ws_max_size or not received[1] & _MASKED
            if is_wrong:
                end = len(received)  # uvicorn says so and closes; the rest does not matter
            if len(received) < end:
                return
            is_quick = received[0] == _WHOLE_TEXT and not is_wrong and not self._is_slow()
            if is_quick and self._take(
                apply_mask(received[start:end], received[start - 4 : start])
            ):
                del received[:end]
            else:
                frame = bytes(received[:end])
                del received[:end]
                super().data_received(frame)

    def _take(self, data: bytes) -> bool:
        """Queue a whole message; False if uvicorn is to do that."""
        if self.queue.qsize() >= _MAX_WAITING:
            return False
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return False
        self.queue.put_nowait({"type": "websocket.receive", "text": text})
        return True

    def send_receive_event_to_app(self) -> None:
        """Hand a message to the application."""
        if self.queue.qsize() >= _MAX_WAITING:
            super().send_receive_event_to_app()
            return
        was_paused, self.read_paused = self.read_paused, True  # it leaves the transport alone
        super().send_receive_event_to_app()
        self.read_paused = was_paused

    async def send(self, message: Any) -> None:
        """Send what the application says."""
        text = message.get("text") if message["type"] == "websocket.send" else None
        if text is None or self._is_slow() or self.conn.extensions or not self.writable.is_set():
            await super().send(message)
            if message["type"] == "websocket.accept":
                self._is_framed = self.conn.state is State.OPEN and not self._is_early
            return
        payload = text.encode()
        self.transport.write(_header(len(payload)) + payload)

    def _is_slow(self) -> bool:
        """Whether anything is unusual."""
        return (
            self.close_sent
            or self.disconnected
            or self.conn.state is not State.OPEN
            or self.conn.current_size is not None
        )


class _Queue:
    """What uvicorn asks of a queue with one reader and no end."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._items: deque[Any] = deque()
        self._reader: asyncio.Future[None] | None = None

    def put_nowait(self, item: Any) -> None:
        self._items.append(item)
        reader, self._reader = self._reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)

    async def get(self) -> Any:
        while not self._items:
            self._reader = self._loop.create_future()
            await self._reader
        return self._items.popleft()

    def empty(self) -> bool:
        return not self._items

    def qsize(self) -> int:
        return len(self._items)


def _payload(received: bytearray) -> tuple[int, int]:
    """Where the payload of a masked frame starts, and its length; 0 if that is yet to come."""
    length = received[1] & ~_MASKED
    if length < _SHORT:
        return 6, length
    if length < _MEDIUM:
        return (8, struct.unpack_from("!H", received, 2)[0]) if len(received) >= 4 else (0, 0)
    return (14, struct.unpack_from("!Q", received, 2)[0]) if len(received) >= 10 else (0, 0)


def _header(length: int) -> bytes:
    if length < _SHORT:
        return bytes((_WHOLE_TEXT, length))
    if length < 2**16:
        return struct.pack("!BBH", _WHOLE_TEXT, _SHORT, length)
    return struct.pack("!BBQ", _WHOLE_TEXT, _MEDIUM, length)
