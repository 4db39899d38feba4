"""A WebSocket proxy that does to frames and connections what networks do."""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidHandshake


@dataclass
class Chaos:
    """How often each misfortune strikes a frame."""

    cut: float = 0.0
    """The connection is cut before the frame passes."""
    half_open: float = 0.0
    """Neither this frame nor any later one passes, and nobody is told."""
    drop: float = 0.0
    """The frame is lost."""
    duplicate: float = 0.0
    """The frame passes twice."""
    late: float = 0.0
    """The frame passes after later ones."""
    stall: float = 0.0
    stall_s: float = 0.5
    seed: int = 0
    struck: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def strikes(self, what: str) -> bool:
        if self._random.random() >= getattr(self, what):
            return False
        self.struck[what] = self.struck.get(what, 0) + 1
        return True


class ChaosProxy:
    """``async with ChaosProxy(url, chaos) as url: ...``"""

    def __init__(self, url: str, chaos: Chaos) -> None:
        self._upstream = url.replace("http://", "ws://")
        self._chaos = chaos
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> str:
        self._server = await serve(
            self._serve,
            "127.0.0.1",
            0,
            select_subprotocol=lambda _, offered: offered[0] if offered else None,
            close_timeout=0.2,
            max_size=None,
        )
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        tasks = list(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=0.5)  # what is about to end leaves no socket open
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._server.close()
        await self._server.wait_closed()
        await asyncio.sleep(0.05)  # aborted transports close their sockets a turn later

    async def _serve(self, client: ServerConnection) -> None:
        assert client.request is not None
        self._keep(asyncio.current_task())
        try:
            server = await connect(
                self._upstream + client.request.path,
                subprotocols=[client.subprotocol] if client.subprotocol else None,
                proxy=None,
                close_timeout=0.2,
                max_size=None,
            )
        except (OSError, InvalidHandshake):
            client.transport.abort()
            return
        pumps = [
            asyncio.ensure_future(self._pump(*ends))
            for ends in ((client, server), (server, client))
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        await server.close(client.close_code if client.close_code in (1000, 4001) else 1000)

    async def _pump(self, source: Any, target: Any) -> None:
        chaos = self._chaos
        try:
            async for frame in source:
                if chaos.strikes("cut"):
                    source.transport.abort()
                    target.transport.abort()
                    return
                if chaos.strikes("half_open"):
                    for end in (source, target):
                        end.transport.pause_reading()
                    await asyncio.sleep(60)
                if chaos.strikes("drop"):
                    continue
                if chaos.strikes("stall"):
                    await asyncio.sleep(chaos.stall_s)
                if chaos.strikes("late"):
                    self._keep(asyncio.create_task(self._late(target, frame)))
                    continue
                await target.send(frame)
                if chaos.strikes("duplicate"):
                    await target.send(frame)
            code = source.close_code or 1006
            await target.close(
                code if code not in (1005, 1006) else 1000, source.close_reason or ""
            )
        except ConnectionClosed:
            return

    async def _late(self, target: Any, frame: Any) -> None:
        await asyncio.sleep(0.05)
        try:
            await target.send(frame)
        except ConnectionClosed:
            return

    def _keep(self, task: Any) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
