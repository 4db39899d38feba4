"""A WebSocket player that costs next to nothing, so that a load measures the server.

It knows one conversation: reset, then the same step for ever. Frames are built once, with a mask of
zeros, and of answers only the length and whether they are errors is looked at.
"""

import asyncio
import time

_HANDSHAKE = (
    "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
_TEXT, _PING, _PONG = 1, 9, 10
_LONG, _LONGER = 126, 127


def frame(payload: bytes, opcode: int = _TEXT) -> bytes:
    """A client's frame of less than 126 bytes."""
    return bytes([0x80 | opcode, 0x80 | len(payload), 0, 0, 0, 0]) + payload


RESET = frame(b'{"type":"reset","data":{"episode_id":"e"}}')
STEP = frame(b'{"type":"step","data":{"message":"hello there"}}')


class PlayerProtocol(asyncio.Protocol):
    """One connection: ``ready`` after the reset, then steps from `start` on."""

    def __init__(self, port: int, *, pause_s: float, delay_s: float) -> None:
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.latencies_s: list[float] = []
        self.errors = 0
        self._port = port
        self._pause_s = pause_s
        self._delay_s = delay_s
        self._buffer = b""
        self._is_open = False
        self._sent_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the WebSocket."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(_HANDSHAKE.format(port=self._port).encode())

    def connection_lost(self, exc: Exception | None) -> None:
        """A connection that ends is an error, unless the measurement is over."""
        self.errors += 1
        if not self.ready.done():
            self.ready.set_exception(ConnectionError("The server closed the connection."))

    def start(self) -> None:
        """Send the first step, after this player's delay."""
        asyncio.get_running_loop().call_later(self._delay_s, self._step)

    def data_received(self, data: bytes) -> None:
        """Take the answers apart."""
        self._buffer += data
        if not self._is_open:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            assert self._buffer.startswith(b"HTTP/1.1 101"), self._buffer[:80]
            self._buffer, self._is_open = self._buffer[end + 4 :], True
            self._transport.write(RESET)
        while (taken := self._take()) is not None:
            self._answered(*taken)

    def _take(self) -> tuple[int, bytes] | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        length, start = buffer[1] & 0x7F, 2
        if length >= _LONG:
            start = 4 if length == _LONG else 10
            length = int.from_bytes(buffer[2:start], "big")
        if len(buffer) < start + length:
            return None
        self._buffer = buffer[start + length :]
        return buffer[0] & 0x0F, buffer[start : start + length]

    def _answered(self, opcode: int, payload: bytes) -> None:
        if opcode == _PING:
            self._transport.write(frame(payload, _PONG))
            return
        if opcode != _TEXT or b'"observation"' not in payload:
            self.errors += 1
        if not self.ready.done():
            self.ready.set_result(None)
            return
        self.latencies_s.append(time.perf_counter() - self._sent_at)
        if self._pause_s:
            asyncio.get_running_loop().call_later(self._pause_s, self._step)
        else:
            self._step()

    def _step(self) -> None:
        self._sent_at = time.perf_counter()
        self._transport.write(STEP)
