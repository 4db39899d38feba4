"""A served app that says what reached it, behind the real server."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import uvicorn

from corral.serve.security import SecurityMiddleware
from corral.serve.security_rules import SecurityRules


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

    @asynccontextmanager
    async def serve(rules: SecurityRules, host: str = "127.0.0.1") -> AsyncIterator[str]:
        listening = socket.create_server((host, 0))
        app = SecurityMiddleware(reporting_app, rules)
        config = uvicorn.Config(
            app, lifespan="off", log_config=None, ws="websockets-sansio", access_log=False
        )
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:  # noqa: ASYNC110 - uvicorn tells only so
            await asyncio.sleep(0.01)
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task

    return serve
