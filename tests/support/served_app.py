"""An ASGI app behind the real server, in the event loop of the test."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import uvicorn


@asynccontextmanager
async def served(
    app: Any, *, lifespan: Literal["on", "off"] = "on", **settings: Any
) -> AsyncIterator[str]:
    """Serve ``app`` while the block runs; gives ``127.0.0.1:port``.

    Args:
        settings: What uvicorn is told otherwise than here.
    """
    # With its protocol named, or asyncio does not switch Nagle's delays off.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen(128)
    usual = {"log_config": None, "ws": "websockets-sansio", "access_log": False}
    config = uvicorn.Config(app, lifespan=lifespan, **(usual | settings))
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        if task.done():
            task.result()
        await asyncio.sleep(0.01)
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
