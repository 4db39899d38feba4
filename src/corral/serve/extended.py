"""The ``corral.v1`` dialogue on ``/ws``: requests have ids, and none is executed twice.

The session, not the connection, owns a request under way: its answer goes to whichever connection
holds the session when it is there, and is kept for the next one.
"""

import asyncio

from corral.serve.close_codes import CloseCode
from corral.serve.dialogue import Dialogue
from corral.serve.faults import Code, ServeFault, StepTimeout, execution_fault, problem
from corral.serve.frames import Frame, check, encode, error_frame, parse
from corral.serve.requests import answer

_MAX_WAITING = 1
"""Requests that may wait for the one under way: a client that gave up on it sends the next."""


class ExtendedDialogue(Dialogue):
    """A connection of a Corral peer."""

    async def run(self) -> None:
        """Talk until either side has had enough; the session may live on."""
        socket = self.socket
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect" or socket.is_closed:
                return
            text = message.get("text")
            try:
                if text is None:
                    raise ServeFault(Code.SESSION_ERROR, "A frame must be text, not binary.")
                frame = parse(text)
                if frame.get("type") == "close":
                    await self.leave()
                    return
                await self._take(frame, _request_id(frame))
            except ServeFault as fault:
                await socket.send(error_frame(fault))

    async def _take(self, frame: Frame, request_id: int) -> None:
        """Execute a request, or repeat its answer, or neither; see docs/protocol.md."""
        ledger = self.session.ledger
        if request_id < ledger.last_id:
            return
        if request_id == ledger.last_id:
            if ledger.answered_id == request_id and ledger.answer is not None:
                await self.socket.send(ledger.answer)
            return
        is_next = request_id == ledger.last_id + 1
        if not is_next or len(ledger.inbox) >= _MAX_WAITING:
            fault = ServeFault(
                Code.OUT_OF_ORDER,
                f"Request {request_id} came while {ledger.last_id + 1} is the next one"
                + " and others are still waiting." * is_next,
            )
            await self.socket.send(error_frame(fault, request_id))
            return
        ledger.last_id = request_id
        ledger.inbox.append(frame)
        if ledger.work is None:
            ledger.work = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        """Execute what is in the inbox, and deliver the answers."""
        session, ledger = self.session, self.session.ledger
        try:
            while ledger.inbox and not session.is_ended:
                frame = ledger.inbox.pop(0)
                is_over = await self._execute(frame, frame["id"])
                if session.connection is not None and ledger.answer is not None:
                    await session.connection.send(ledger.answer)
                if is_over and session.connection is not None:
                    connection, session.connection = session.connection, None
                    await connection.end(None, CloseCode.LOST)
        finally:
            ledger.work = None

    async def _execute(self, frame: Frame, request_id: int) -> bool:
        """Keep the answer of one request; whether the session is over with it."""
        ledger = self.session.ledger
        is_over = False
        try:
            kind = check(frame, is_extended=True)
            text = encode(
                *await answer(self.sessions, self.mcp, self.session, kind, frame), request_id
            )
        except ServeFault as fault:
            is_over = isinstance(fault, StepTimeout)
            text = error_frame(fault, request_id)
        except Exception as error:  # noqa: BLE001 - the client waits for an answer, whatever it is
            text = error_frame(execution_fault("The server", error), request_id)
        ledger.answered_id, ledger.answer = request_id, text
        return is_over


def _request_id(frame: Frame) -> int:
    value = frame.get("id")
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise ServeFault(
        Code.VALIDATION_ERROR,
        "Invalid message",
        errors=[problem("int_type", ["id"], "Input should be a whole number from 1")],
    )
