"""JSON over HTTP for the routes that are plain ASGI: read a body, send an answer."""

from collections.abc import Sequence
from typing import Any

from pydantic_core import to_json

from corral.serve.asgi import Receive, Send

Headers = Sequence[tuple[bytes, bytes]]
NO_CONTENT = 204


async def read_body(receive: Receive) -> bytes | None:
    """The body of a request; None if the client is gone before its end."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


async def send_json(
    send: Send,
    status: int,
    content: Any = None,
    headers: Headers = (),
    *,
    message: str = "http.response",
) -> None:
    """Send an answer; without ``content`` an empty one.

    Args:
        message: What ASGI calls the answer; a refused WebSocket handshake has another name for it.
    """
    body = b"" if content is None else to_json(content, inf_nan_mode="null")
    described = list(headers)
    if status != NO_CONTENT:
        described.append((b"content-length", str(len(body)).encode()))
    if body:
        described.append((b"content-type", b"application/json"))
    await send({"type": f"{message}.start", "status": status, "headers": described})
    await send({"type": f"{message}.body", "body": body})
