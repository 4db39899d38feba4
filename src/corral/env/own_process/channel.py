"""JSON objects over a socket pair, each wait with a deadline."""

import json
import select
import socket
import struct
import time
from typing import Any

_LENGTH = struct.Struct("!I")


class Channel:
    """One end of the pair. One thread at a time sends and receives."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def send(self, message: dict[str, Any], *, timeout_s: float | None = None) -> None:
        """Send an object.

        Raises:
            EOFError: The other end is gone.
            TimeoutError: It does not read.
        """
        text = json.dumps(message).encode()
        self._socket.settimeout(timeout_s)
        try:
            self._socket.sendall(_LENGTH.pack(len(text)) + text)
        except TimeoutError:
            raise
        except OSError as error:
            raise EOFError(str(error)) from error

    def receive(self, *, timeout_s: float | None = None) -> dict[str, Any]:
        """The next object.

        Raises:
            EOFError: The other end is gone.
            TimeoutError: It did not come, or not all of it.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size, until))
        return json.loads(self._read(length, until))

    @property
    def is_silent(self) -> bool:
        """Whether the other end is there and has sent nothing that was not received."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)  # the end of what is sent can be read, too

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _read(self, length: int, until: float | None) -> bytes:
        parts: list[bytes] = []
        while length:
            if until is not None:
                # Zero would mean not to wait at all, which is another error.
                self._socket.settimeout(max(until - time.monotonic(), 0.001))
            else:
                self._socket.settimeout(None)
            try:
                part = self._socket.recv(min(length, 1 << 20))
            except TimeoutError:
                raise
            except OSError as error:
                raise EOFError(str(error)) from error
            if not part:
                raise EOFError("the other end hung up")
            parts.append(part)
            length -= len(part)
        return b"".join(parts)
