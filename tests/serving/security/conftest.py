"""A served app that says what reached it, behind the real server."""

import json
from collections.abc import Callable

import pytest

from corral.serve.security import SecurityMiddleware
from corral.serve.security_rules import SecurityRules
from support import served_app


async def reporting_app(scope, receive, send) -> None:
    """Answers with the size of the body; a WebSocket echoes."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})
        return
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    body = json.dumps({"size": size}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def served() -> Callable:
    """Serves the app with given rules: ``async with served(rules) as address``."""

    def serve(rules: SecurityRules):
        return served_app.served(SecurityMiddleware(reporting_app, rules), lifespan="off")

    return serve
