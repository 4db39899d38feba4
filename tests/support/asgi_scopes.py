"""Connections as an ASGI server describes them, for addresses that a test cannot connect from."""

import json
from typing import Any

from corral.serve.security import SecurityMiddleware
from corral.serve.security_rules import SecurityRules


def scope_of(
    *,
    kind: str = "http",
    server: Any = ("127.0.0.1", 8000),
    client: Any = ("127.0.0.1", 50000),
    headers: dict[str, str] | None = None,
) -> dict[str, Any]:
    """One connection; its Host is this machine unless ``headers`` has another."""
    given = {"host": "localhost:8000", **(headers or {})}
    return {
        "type": kind,
        "method": "GET",
        "path": "/reset",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "server": server,
        "client": client,
        "extensions": {"websocket.http.response": {}},
    }


async def refused(
    rules: SecurityRules | SecurityMiddleware, scope: dict[str, Any]
) -> tuple[int, str] | None:
    """Status and code of the refusal; None if the connection was let in."""
    sent: list[dict[str, Any]] = []

    async def app(scope, receive, send) -> None:
        return None

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message) -> None:
        sent.append(message)

    middleware = SecurityMiddleware(app, rules) if isinstance(rules, SecurityRules) else rules
    await middleware(scope, receive, send)
    if not sent:
        return None
    return sent[0]["status"], json.loads(sent[1]["body"])["code"]
