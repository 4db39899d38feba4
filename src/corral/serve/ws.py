"""The ``/ws`` endpoint: who connects, what they speak, and which session they get."""

import asyncio
import hmac
from typing import Any
from urllib.parse import parse_qs

from corral.serve.asgi import Receive, Scope, Send
from corral.serve.close_codes import CloseCode
from corral.serve.extended import ExtendedDialogue
from corral.serve.faults import CapacityReached, Code, ServeFault
from corral.serve.frames import encode, parse
from corral.serve.mcp import McpDialect
from corral.serve.plain import PlainDialogue
from corral.serve.session import Owner, Session
from corral.serve.sessions import Sessions
from corral.serve.websocket import SUBPROTOCOL, Socket

_NEWS_INTERVAL_S = 3.0
_MAX_KEPT = 16
"""Messages a client may send while it waits for a slot."""


class PlayEndpoint:
    """An ASGI application for WebSocket scopes."""

    def __init__(self, sessions: Sessions, mcp: McpDialect) -> None:
        self._sessions = sessions
        self._mcp = mcp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection from its handshake to its end.

        In a task of its own: whatever wakes a task passes through each coroutine that waits in it,
        and the layers around this one are many.
        """
        await asyncio.create_task(self._serve(scope, receive, send))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        is_extended = SUBPROTOCOL in scope.get("subprotocols", ())
        accept: dict[str, Any] = {"type": "websocket.accept"}
        if is_extended:
            accept["subprotocol"] = SUBPROTOCOL
        await send(accept)
        socket = Socket(receive, send, is_extended=is_extended)
        session_id = _session_id(scope)
        try:
            if session_id is not None:
                session = await self._attach(socket, session_id)
            else:
                session = await self._open(socket)
            if session is not None:
                await self._talk(socket, session)
        except ServeFault as fault:
            await socket.end(fault, _close_code(fault))

    async def _talk(self, socket: Socket, session: Session) -> None:
        try:
            if socket.is_extended:
                await ExtendedDialogue(self._sessions, self._mcp, socket, session).run()
            else:
                await PlainDialogue(self._sessions, self._mcp, socket, session).run()
        finally:
            await self._detach(socket, session)

    async def _detach(self, socket: Socket, session: Session) -> None:
        if session.connection is not socket:
            return  # ended, or taken over by another connection
        session.connection = None
        if session.owner is Owner.REQUESTS and not session.is_closing:
            return
        if socket.is_extended and self._sessions.settings.lease_s and not session.is_closing:
            self._sessions.start_lease(session)
            return
        await self._sessions.end(session)

    async def _open(self, socket: Socket) -> Session | None:
        """A new session on a free slot; None if the peer left the queue."""
        slots = self._sessions.slots
        place = slots.request()
        if not place.done() and not await self._wait(socket, place):
            return None
        session = await self._sessions.open(Owner.SOCKET)
        session.connection = socket
        if socket.is_extended:
            await self._greet(socket, session)
        return session

    async def _wait(self, socket: Socket, place: "asyncio.Future[None]") -> bool:
        """Wait for a slot while listening; False if the peer is gone."""
        slots, settings = self._sessions.slots, self._sessions.settings
        loop = asyncio.get_running_loop()
        deadline = loop.time() + settings.queue_timeout_s
        hearing: asyncio.Task[Any] | None = loop.create_task(socket.hear())
        try:
            while not place.done():
                left = deadline - loop.time()
                if left <= 0:
                    raise slots.refusal()
                if socket.is_extended:
                    await socket.send(self._queue_news(place))
                waited: set[asyncio.Future[Any]] = {place} | ({hearing} if hearing else set())
                await asyncio.wait(
                    waited,
                    timeout=min(left, _NEWS_INTERVAL_S),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if hearing is not None and hearing.done():
                    message = hearing.result()
                    if message["type"] == "websocket.disconnect":
                        slots.give_up(place)
                        return False
                    is_full = socket.keep(message) >= _MAX_KEPT
                    hearing = None if is_full else loop.create_task(socket.hear())
        except BaseException:
            slots.give_up(place)
            if hearing is not None:
                hearing.cancel()
            raise
        socket.hearing = hearing
        return True

    def _queue_news(self, place: "asyncio.Future[None]") -> str:
        slots = self._sessions.slots
        return encode(
            "queued",
            {
                "position": slots.position(place),
                "max_sessions": slots.max_sessions,
                "active_sessions": slots.active_sessions,
                "wait_limit_s": self._sessions.settings.queue_timeout_s,
            },
        )

    async def _greet(self, socket: Socket, session: Session, **more: Any) -> None:
        slots, settings = self._sessions.slots, self._sessions.settings
        hello = {
            "session_id": session.id,
            "token": session.token,
            "lease_s": settings.lease_s,
            "max_sessions": slots.max_sessions,
            "active_sessions": slots.active_sessions,
            "step_timeout_s": settings.step_timeout_s,
            "is_replayable": self._sessions.kind.is_replayable,
            **more,
        }
        await socket.send(encode("hello", hello))

    async def _attach(self, socket: Socket, session_id: str) -> Session | None:
        if socket.is_extended:
            return await self._attach_again(socket, session_id)
        session = self._sessions.find(session_id)
        if session is None or session.owner is not Owner.REQUESTS:
            raise ServeFault(Code.SESSION_ERROR, f"Unknown session_id: {session_id[:80]}")
        if session.connection is not None:
            raise ServeFault(
                Code.SESSION_ERROR, f"Session {session_id} already has an attached WebSocket"
            )
        session.connection = socket
        return session

    async def _attach_again(self, socket: Socket, session_id: str) -> Session | None:
        """Give a Corral peer its session back, if the first frame has the session's token."""
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return None
        session = self._sessions.find(session_id)
        if session is None or not _may_attach(message.get("text"), session):
            raise ServeFault(
                Code.SESSION_LOST, f"There is no session {session_id[:80]} (any more)."
            )
        self._sessions.release_lease(session)
        before, session.connection = session.connection, socket
        # Sent before anything else can be: no answer overtakes the greeting.
        await self._greet(socket, session, last_id=session.ledger.last_id)
        if before is not None:
            await before.end(None, CloseCode.TAKEN_OVER)
        return session


def _may_attach(text: Any, session: Session) -> bool:
    if not isinstance(text, str):
        return False
    try:
        frame = parse(text)
    except ServeFault:
        return False
    data = frame.get("data")
    if frame.get("type") != "attach" or not isinstance(data, dict):
        return False
    token = data.get("token")
    return (
        data.get("session_id") == session.id
        and isinstance(token, str)
        and hmac.compare_digest(token.encode(), session.token.encode())
    )


def _close_code(fault: ServeFault) -> CloseCode:
    if isinstance(fault, CapacityReached):
        return CloseCode.FULL
    return CloseCode.LOST if fault.code is Code.SESSION_LOST else CloseCode.FAILED


def _session_id(scope: Scope) -> str | None:
    values = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("session_id")
    return values[0] if values else None
