"""A session with a server that speaks plain OpenEnv: the connection is the session."""

import contextlib

from corral.serve.client.connection import Connection, ConnectionLost, Frame, encode, now
from corral.serve.client.errors import (
    MessageTooLargeError,
    ProtocolError,
    RequestTimeoutError,
    SessionLostError,
    error_from_data,
)
from corral.serve.client.options import ClientOptions
from corral.serve.close_codes import CloseCode


class PlainLink:
    """Requests and answers in strict alternation; without ids nothing else can pair them."""

    is_replayable = False

    def __init__(self, connection: Connection, options: ClientOptions) -> None:
        self._connection = connection
        self._options = options

    @property
    def is_lost(self) -> bool:
        """Whether the session is over."""
        return self._connection.is_lost and not self._connection.has_unread

    async def request(self, frame: Frame, *, deadline: float) -> Frame:
        """Send a request and wait for its answer.

        After any exception the connection must be dropped: an answer may still be under way.

        Raises:
            SessionLostError: The connection ended.
            RequestTimeoutError: No answer came in time.
            MessageTooLargeError: One side does not take a frame of this size.
        """
        text = encode({name: value for name, value in frame.items() if name != "timeout_s"})
        if self._connection.has_unread:
            await self._read_unasked(deadline)
        # A full server says so and closes at once: what it said is read even if sending fails.
        with contextlib.suppress(ConnectionLost):
            await self._send(text, deadline)
        try:
            answer = await self._connection.receive(deadline=deadline)
        except ConnectionLost as lost:
            raise session_lost(lost) from None
        if answer is None:
            raise timed_out(frame)
        return answer

    async def end(self) -> None:
        """Say good-bye, which frees the slot, and close."""
        deadline = now() + self._options.close_timeout_s
        with contextlib.suppress(ConnectionLost, TimeoutError):
            await self._connection.send('{"type": "close"}', deadline=deadline)
            await self._connection.wait_closed(deadline - now())
        await self._connection.close(max(0.1, deadline - now()))

    def drop(self) -> None:
        """Give the session up at once."""
        self._connection.drop()

    async def _send(self, text: str, deadline: float) -> None:
        try:
            await self._connection.send(text, deadline=deadline)
        except TimeoutError as error:
            raise RequestTimeoutError("The server did not take the request in time.") from error

    async def _read_unasked(self, deadline: float) -> None:
        frame = await self._connection.receive(deadline=deadline)
        if frame is not None and frame.get("type") == "error":
            raise error_from_data(frame.get("data"))
        raise ProtocolError("The server sent an answer to a request that nobody made.")


def session_lost(lost: ConnectionLost) -> Exception:
    """What a closed connection means for the request that waits."""
    if lost.code == CloseCode.TOO_LARGE:
        if lost.closed_by_us:
            return MessageTooLargeError(
                f"The answer is larger than max_message_size_mb allows ({lost})."
            )
        return MessageTooLargeError(f"The request is larger than the server accepts ({lost}).")
    return SessionLostError(f"The session was lost: {lost}. Start another one with reset().")


def timed_out(frame: Frame) -> RequestTimeoutError:
    """No answer to ``frame`` in time."""
    return RequestTimeoutError(
        f"No answer to {frame.get('type')!r} in time (message_timeout_s). The session is given up; "
        "start another one with reset()."
    )
