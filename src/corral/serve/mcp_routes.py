"""The carriers of MCP beside ``/ws``: POST ``/mcp`` and the ``/mcp`` socket."""

from typing import Any

from pydantic_core import from_json, to_json

from corral.serve.asgi import Receive, Scope, Send
from corral.serve.close_codes import CloseCode
from corral.serve.faults import ServeFault
from corral.serve.json_http import read_body, send_json
from corral.serve.mcp import PARSE_ERROR, SERVER_ERROR, McpDialect, failure, parsed
from corral.serve.mcp_standard import StandardMcpServer
from corral.serve.session import Owner, Session
from corral.serve.sessions import Sessions
from corral.serve.websocket import Socket


class McpHttpEndpoint:
    """An ASGI application for HTTP requests to ``/mcp``."""

    def __init__(self, dialect: McpDialect, standard: StandardMcpServer) -> None:
        self._dialect = dialect
        self._standard = standard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer OpenEnv's JSON-RPC, or have the request answered as standard MCP."""
        payload: Any = None
        if scope["method"] == "POST":
            body = await read_body(receive)
            if body is None:
                return
            payload = parsed(body)
        if self._standard.wants(scope, payload):
            await self._standard.answer(scope, payload, send)
        elif scope["method"] == "POST":
            await send_json(send, 200, await self._dialect.answer_post(payload))
        else:
            await send_json(send, 405, {"detail": "Method Not Allowed"}, [(b"allow", b"POST")])


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
            await socket.close(CloseCode.GOOD_BYE)
            return
        session.connection = socket
        try:
            await self._talk(socket, session)
        finally:
            session.connection = None
            await self._sessions.end(session)
            await socket.close(CloseCode.GOOD_BYE)

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
