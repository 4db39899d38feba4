"""Raw HTTP and WebSocket, with nothing between the check and the server."""

import asyncio
import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from corral.errors import UsageError

LARGEST_FRAME = 200 * 1024 * 1024
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """Status and body of one HTTP answer."""

    status: int
    text: str

    @property
    def json(self) -> Any:
        """The body as JSON, or None where it is none."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None

    def __str__(self) -> str:
        return f"{self.status} {self.text}"


async def ask_http(
    url: str,
    method: str,
    path: str,
    *,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 10.0,
) -> HttpAnswer:
    """Send one request on a new connection. A ``bytes`` body goes as it is, others as JSON."""
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    sent = dict(headers or {})
    if data is not None:
        sent["Content-Type"] = "application/json"
    return await asyncio.to_thread(_ask_http, url, method, path, data, sent, timeout_s)


def _ask_http(
    url: str, method: str, path: str, data: bytes | None, headers: dict[str, str], timeout_s: float
) -> HttpAnswer:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme in ("https", "wss"):
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, parts.port, timeout=timeout_s, context=ssl.create_default_context()
        )
    else:
        connection = http.client.HTTPConnection(host, parts.port, timeout=timeout_s)
    try:
        connection.request(method, parts.path.rstrip("/") + path, data, headers)
        answer = connection.getresponse()
        return HttpAnswer(status=answer.status, text=answer.read().decode(errors="replace"))
    except http.client.HTTPException as error:
        raise ConnectionError(f"{method} {path}: {type(error).__name__}: {error}") from error
    finally:
        connection.close()


@dataclass(frozen=True, slots=True)
class Closed:
    """The server closed the connection."""

    code: int | None

    def get(self, _key: str, default: Any = None) -> Any:
        """So that a caller may look for a key in whatever came."""
        return default


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing came for ``seconds``."""

    seconds: float

    def get(self, _key: str, default: Any = None) -> Any:
        """So that a caller may look for a key in whatever came."""
        return default


Frame = dict[str, Any] | Closed | Silence


class Socket:
    """A WebSocket on which text frames with JSON objects are exchanged."""

    def __init__(self, connection: ClientConnection, timeout_s: float) -> None:
        self.connection, self._timeout_s = connection, timeout_s

    async def send(self, frame: Any) -> None:
        """Send ``str`` and ``bytes`` as they are, anything else as JSON."""
        try:
            await self.connection.send(
                frame if isinstance(frame, str | bytes) else json.dumps(frame)
            )
        except ConnectionClosed:
            return  # Frames that came before are still there to be read, and then the close.

    async def receive(self, timeout_s: float | None = None) -> Frame:
        """The next frame, the close, or silence."""
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        try:
            text = await asyncio.wait_for(self.connection.recv(), limit_s)
        except TimeoutError:
            return Silence(limit_s)
        except ConnectionClosed:
            return Closed(self.connection.close_code)
        try:
            frame = json.loads(text)
        except ValueError:
            return {"not JSON": text}
        return frame if isinstance(frame, dict) else {"no object": frame}

    async def ask(self, frame: Any, timeout_s: float | None = None) -> Frame:
        """Send, and receive one frame."""
        await self.send(frame)
        return await self.receive(timeout_s)

    async def leave(self) -> None:
        """Say good-bye, and wait until the server has closed."""
        await self.send({"type": "close"})
        while not isinstance(await self.receive(2.0), Closed | Silence):
            pass
        await self.connection.close()

    def cut(self) -> None:
        """Drop the connection without a word."""
        self.connection.transport.abort()


async def open_socket(
    url: str, path: str, *, headers: Mapping[str, str] | None = None, timeout_s: float = 10.0
) -> Socket:
    """Connect without a subprotocol."""
    parts = urlsplit(url)
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    if scheme not in ("ws", "wss"):
        raise UsageError(f"{url!r} is no URL of a server: it starts with http:// or https://.")
    connection = await connect(
        f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}{path}",
        additional_headers=headers,
        max_size=LARGEST_FRAME,
        open_timeout=timeout_s,
        close_timeout=2.0,
        proxy=None if parts.hostname in _LOOPBACK else True,
    )
    return Socket(connection, timeout_s)
