"""OpenEnv's dialogue on ``/ws``: one frame in, its answer out, in order."""

from corral.serve.close_codes import CloseCode
from corral.serve.dialogue import Dialogue
from corral.serve.faults import Code, ServeFault, StepTimeout
from corral.serve.frames import NotAnObject, check, encode, error_frame, parse
from corral.serve.requests import answer
from corral.serve.websocket import as_seen


class PlainDialogue(Dialogue):
    """A connection of a peer that speaks plain OpenEnv."""

    async def run(self) -> None:
        """Talk until either side has had enough."""
        socket = self.socket
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect" or socket.is_closed:
                return
            text = message.get("text")
            if text is None:
                fault = ServeFault(Code.SESSION_ERROR, "A frame must be text, not binary.")
                await socket.end(fault, CloseCode.GOOD_BYE)
                return
            try:
                frame = parse(text)
                kind = check(frame)
                if kind == "close":
                    await self.leave()
                    return
                await socket.send(
                    encode(*await answer(self.sessions, self.mcp, self.session, kind, frame))
                )
            except (NotAnObject, StepTimeout) as fault:
                await socket.end(as_seen(fault, is_extended=False), CloseCode.GOOD_BYE)
                return
            except ServeFault as fault:
                await socket.send(error_frame(fault))
