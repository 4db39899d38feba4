"""A WebSocket as ASGI has it, read and written without a framework in between."""

import asyncio
import logging
from collections import deque

from corral.serve.asgi import Message, Receive, Send
from corral.serve.close_codes import CloseCode
from corral.serve.faults import Code, ServeFault
from corral.serve.frames import error_frame

SUBPROTOCOL = "corral.v1"
logger = logging.getLogger(__name__)


class Socket:
    """One accepted connection."""

    def __init__(self, receive: Receive, send: Send, *, is_extended: bool) -> None:
        self._receive = receive
        self._send = send
        self._kept: deque[Message] = deque()
        self.hearing: asyncio.Future[Message] | None = None
        """A read under way whose result `receive` must not miss."""
        self.is_extended = is_extended
        """Whether the peer speaks ``corral.v1``."""
        self.is_closed = False

    async def receive(self) -> Message:
        """The next message; after a disconnect, that again."""
        if self._kept:
            return self._kept.popleft()
        if self.hearing is not None:
            hearing, self.hearing = self.hearing, None
            return await hearing
        return await self._receive()

    async def hear(self) -> Message:
        """The next message from the network, past what was put aside."""
        return await self._receive()

    def keep(self, message: Message) -> int:
        """Put a message aside for `receive`; how many there are now."""
        self._kept.append(message)
        return len(self._kept)

    async def send(self, text: str) -> None:
        """Send a frame; a peer that is gone is no error."""
        if self.is_closed:
            return
        try:
            await self._send({"type": "websocket.send", "text": text})
        except (OSError, RuntimeError):  # how servers say that the peer is gone
            self.is_closed = True

    async def close(self, code: CloseCode) -> None:
        """Close the connection. A plain OpenEnv peer knows no other code than GOOD_BYE."""
        if self.is_closed:
            return
        self.is_closed = True
        try:
            known = code if self.is_extended else CloseCode.GOOD_BYE
            await self._send({"type": "websocket.close", "code": int(known)})
        except (OSError, RuntimeError):
            logger.debug("the peer was gone before it was told good-bye")

    async def end(self, fault: ServeFault | None, code: CloseCode) -> None:
        """Tell the peer why, and close."""
        if fault is not None:
            await self.send(error_frame(as_seen(fault, is_extended=self.is_extended)))
        await self.close(code)


def as_seen(fault: ServeFault, *, is_extended: bool) -> ServeFault:
    """The fault with a code that the peer knows."""
    own = (Code.STEP_TIMEOUT, Code.OUT_OF_ORDER, Code.SESSION_LOST)
    if is_extended or fault.code not in own:
        return fault
    return ServeFault(Code.SESSION_ERROR, fault.message, **fault.details)
