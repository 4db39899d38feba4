"""What both dialogues on ``/ws`` share: who talks in which session, and how one takes leave."""

from dataclasses import dataclass

from corral.serve.close_codes import CloseCode
from corral.serve.mcp import McpDialect
from corral.serve.session import Owner, Session
from corral.serve.sessions import Sessions
from corral.serve.websocket import Socket


@dataclass(slots=True, eq=False)
class Dialogue:
    """A connection and the session it plays in."""

    sessions: Sessions
    mcp: McpDialect
    socket: Socket
    session: Session

    async def leave(self) -> None:
        """End a session that lives as long as its socket; then close.

        In this order: the slot is free before the peer sees the close, and its next client gets it.
        """
        session = self.session
        session.connection = None
        if session.owner is Owner.SOCKET or session.is_closing:
            await self.sessions.end(session)
        await self.socket.close(CloseCode.GOOD_BYE)
