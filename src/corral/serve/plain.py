"""OpenEnv's dialogue on ``/ws``: one frame in, its answer out, in order."""

from corral.serve.faults import Code, ServeFault, StepTimeout
from corral.serve.frames import NotAnObject, check, encode, error_frame, parse
from corral.serve.mcp import McpDialect
from corral.serve.requests import answer
from corral.serve.session import Owner, Session
from corral.serve.sessions import Sessions
from corral.serve.websocket import Socket, as_seen

GOOD_BYE_CODE = 1000


class PlainDialogue:
    """A connection of a peer that speaks plain OpenEnv."""

    def __init__(
        self, sessions: Sessions, mcp: McpDialect, socket: Socket, session: Session
    ) -> None:
        self._sessions = sessions
        self._mcp = mcp
        self._socket = socket
        self._session = session

    async def run(self) -> None:
        """Talk until either side has had enough."""
        socket = self._socket
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect" or socket.is_closed:
                return
            text = message.get("text")
            if text is None:
                fault = ServeFault(Code.SESSION_ERROR, "A frame must be text, not binary.")
                await socket.end(fault, GOOD_BYE_CODE)
                return
            try:
                frame = parse(text)
                kind = check(frame)
                if kind == "close":
                    # The slot is free before the peer sees the close: its next client gets it.
                    await self._leave()
                    return
                await socket.send(
                    encode(*await answer(self._sessions, self._mcp, self._session, kind, frame))
                )
            except (NotAnObject, StepTimeout) as fault:
                await socket.end(as_seen(fault, is_extended=False), GOOD_BYE_CODE)
                return
            except ServeFault as fault:
                await socket.send(error_frame(fault))

    async def _leave(self) -> None:
        session = self._session
        session.connection = None
        if session.owner is Owner.SOCKET or session.is_closing:
            await self._sessions.end(session)
        await self._socket.close(GOOD_BYE_CODE)
