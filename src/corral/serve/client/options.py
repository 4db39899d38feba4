"""How a client behaves: sizes, pings and deadlines, in one record."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from corral.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """All there is to set about a client's connections. Every wait has a limit."""

    connect_timeout_s: float = 10.0
    """For one attempt to connect."""
    message_timeout_s: float = 60.0
    """From sending a request to its answer, reconnecting included."""
    queue_timeout_s: float = 60.0
    """How long to wait for a free slot of a full server; 0 for not at all."""
    close_timeout_s: float = 3.0
    """How long to wait for the server to say good-bye."""
    max_message_bytes: int = 100 * 1024 * 1024
    ping_interval_s: float | None = 20.0
    """None for no pings."""
    ping_timeout_s: float | None = 20.0
    """How long a pong may take until the connection counts as dead; None for ever."""
    retransmit_after_s: float = 2.0
    """Silence after which a request is sent again (servers that know request ids only)."""
    liveness_timeout_s: float = 10.0
    """How long a silent server may take to answer a ping before the connection is replaced."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Sent with every handshake and HTTP request."""
    token: str | None = field(default=None, repr=False)
    """The server's token, sent as ``Authorization: Bearer``."""
    offers_resume: bool = True
    """Whether to offer the ``corral.v1`` subprotocol."""

    def __post_init__(self) -> None:
        for name in (
            "connect_timeout_s",
            "message_timeout_s",
            "close_timeout_s",
            "max_message_bytes",
            "retransmit_after_s",
            "liveness_timeout_s",
        ):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name}={getattr(self, name)!r} must be more than 0.")
        if not self.queue_timeout_s >= 0:
            raise UsageError(f"queue_timeout_s={self.queue_timeout_s!r} must be 0 or more.")

    def all_headers(self) -> dict[str, str]:
        """The headers, the token among them."""
        named = dict(self.headers)
        if self.token is not None and not any(name.lower() == "authorization" for name in named):
            named["Authorization"] = f"Bearer {self.token}"
        return named
