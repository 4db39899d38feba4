"""uvicorn's WebSocket protocol, without the work it does anew for each frame.

uvicorn stops reading from the socket after every frame until the application asks for the next
one, which is two system calls a frame. A session answers frame by frame, so a few may just wait.
"""

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

_MAX_WAITING = 16
"""Frames; only then is the client made to wait."""


class QuickWebSocketProtocol(WebSocketsSansIOProtocol):
    """A connection that stops reading only when the application has fallen behind."""

    def send_receive_event_to_app(self) -> None:
        """Hand a message to the application."""
        if self.queue.qsize() < _MAX_WAITING - 1:
            self.read_paused = True  # the base class then leaves the transport alone
            super().send_receive_event_to_app()
            self.read_paused = False
        else:
            super().send_receive_event_to_app()
