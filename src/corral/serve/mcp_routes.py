"""The carriers of MCP beside ``/ws``: POST ``/mcp`` and the ``/mcp`` socket."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from pydantic_core import from_json, to_json

from corral.serve.faults import ServeFault
from corral.serve.mcp import PARSE_ERROR, SERVER_ERROR, McpDialect, failure
from corral.serve.session import Owner, Session
from corral.serve.sessions import Sessions
from corral.serve.websocket import Message, Receive, Scope, Send, Socket

GOOD_BYE_CODE = 1000


class StandardMcp(Protocol):
    """The standard MCP protocol as an ASGI application, served beside OpenEnv's dialect."""

    def wants(self, scope: Scope, payload: Any) -> bool:
        """Whether a request is a standard MCP client's; ``payload`` is the JSON of a POST."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        ...


class McpHttpEndpoint:
    """An ASGI application for HTTP requests to ``/mcp``."""

    def __init__(self, dialect: McpDialect, standard: StandardMcp | None = None) -> None:
        self._dialect = dialect
        self.standard = standard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer OpenEnv's JSON-RPC, or pass the request on to the standard protocol."""
        if scope["method"] != "POST":
            if self.standard is not None and self.standard.wants(scope, None):
                await self.standard(scope, receive, send)
                return
            await _respond(send, 405, {"detail": "Method Not Allowed"}, [(b"allow", b"POST")])
            return
        body = await _read(receive)
        if body is None:
            return
        try:
            payload = from_json(body, allow_inf_nan=False)
        except ValueError:
            payload = None
        if self.standard is not None and self.standard.wants(scope, payload):
            await self.standard(scope, _replay(body, receive), send)
            return
        await _respond(send, 200, await self._dialect.answer_text(body))


class McpSocketEndpoint:
    """An ASGI application for WebSocket connections to ``/mcp``: one session each."""

    def __init__(self, sessions: Sessions, dialect: McpDialect) -> None:
        self._sessions = sessions
        self._dialect = dialect

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection from its handshake to its end."""
        await receive()  # websocket.connect
        await send({"type": "websocket.accept"})
        socket = Socket(receive, send, is_extended=False)
        try:
            await self._sessions.slots.take(self._sessions.settings.queue_timeout_s)
            session = await self._sessions.open(Owner.SOCKET)
        except ServeFault as fault:
            await socket.send(_text(failure(None, SERVER_ERROR, fault.message, fault.details)))
            await socket.close(GOOD_BYE_CODE)
            return
        session.connection = socket
        try:
            await self._talk(socket, session)
        finally:
            session.connection = None
            await self._sessions.end(session)
            await socket.close(GOOD_BYE_CODE)

    async def _talk(self, socket: Socket, session: Session) -> None:
        while not session.is_ended:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            try:
                payload = from_json(text if text is not None else message["bytes"])
            except ValueError as error:
                await socket.send(_text(failure(None, PARSE_ERROR, f"Parse error: {error}")))
                continue
            if not isinstance(payload, dict):
                await socket.send(
                    _text(failure(None, SERVER_ERROR, "A request must be a JSON object."))
                )
                return
            await socket.send(_text(await self._dialect.answer(payload, session=session)))


def _text(response: dict[str, Any]) -> str:
    return to_json(response, inf_nan_mode="null").decode()


async def _read(receive: Receive) -> bytes | None:
    """The body of a request; None if the client is gone before its end."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Callable[[], Awaitable[Message]]:
    """A ``receive`` that gives the body which was read already, and then what comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


async def _respond(
    send: Send, status: int, content: Any, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    body = to_json(content, inf_nan_mode="null")
    described = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *(headers or []),
    ]
    await send({"type": "http.response.start", "status": status, "headers": described})
    await send({"type": "http.response.body", "body": body})
