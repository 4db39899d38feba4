"""A network that is worse than real ones, between a WebSocket client and its server.

The proxy ends WebSocket on both sides, so that it can tamper with frames. What it does to which
frame of which connection follows from its seed. A half-open connection is one whose sockets stay
open while nothing passes, pongs neither. `Supervisor` kills the server and starts it again.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from support.server_process import ServerProcess

LARGEST_FRAME = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How often, per frame, what happens; the rest passes."""

    seed: int
    drop: float = 0.0
    """Both connections are reset (RST)."""
    half_open: float = 0.0
    """From now on nothing passes, in neither direction."""
    stall: float = 0.0
    """The frame, and all behind it, comes ``stall_s`` later."""
    duplicate: float = 0.0
    reorder: float = 0.0
    """The frame comes after the next one of its direction."""
    stall_s: float = 2.0

    def stream(self, connection: int, direction: str) -> random.Random:
        """The chance of one direction of one connection."""
        return random.Random(f"{self.seed}/{connection}/{direction}")

    def choose(self, chance: random.Random) -> str:
        """What happens to a frame."""
        names = ("drop", "half_open", "stall", "duplicate", "reorder")
        weights = [getattr(self, name) for name in names]
        return chance.choices([*names, "pass"], [*weights, 1.0 - sum(weights)])[0]


@dataclass
class ChaosProxy:
    """Forwards to ``upstream`` (``ws://host:port``) what its plan lets through."""

    upstream: str
    plan: Plan
    url: str = ""
    counts: Counter[str] = field(default_factory=Counter[str])
    is_calm: bool = False
    """While true, everything passes."""
    _links: dict[ServerConnection, ClientConnection] = field(
        default_factory=dict[ServerConnection, ClientConnection]
    )
    _number: int = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator["ChaosProxy"]:
        """Listen while the block runs."""
        async with serve(
            self._forward,
            "127.0.0.1",
            0,
            process_request=self._open_upstream,
            select_subprotocol=self._as_upstream,
            compression=None,
            max_size=LARGEST_FRAME,
            ping_interval=None,
            close_timeout=0.2,
        ) as server:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            try:
                yield self
            finally:
                for near, far in list(self._links.items()):
                    _abort(near, far)
                server.close(close_connections=False)

    async def _open_upstream(self, near: ServerConnection, request: Any) -> Any:
        offered = request.headers.get("Sec-WebSocket-Protocol")
        authorization = request.headers.get("Authorization")
        try:
            self._links[near] = await connect(
                self.upstream + request.path,
                subprotocols=[part.strip() for part in offered.split(",")] if offered else None,
                additional_headers={"Authorization": authorization} if authorization else None,
                compression=None,
                max_size=LARGEST_FRAME,
                ping_interval=None,
                close_timeout=0.2,
                proxy=None,
            )
        except InvalidStatus as error:
            return near.respond(HTTPStatus(error.response.status_code), "refused upstream\n")
        except (OSError, WebSocketException):
            self.counts["refused"] += 1
            return near.respond(HTTPStatus.BAD_GATEWAY, "no server\n")
        return None

    def _as_upstream(self, near: ServerConnection, _offered: Any) -> Any:
        return self._links[near].subprotocol

    async def _forward(self, near: ServerConnection) -> None:
        far = self._links[near]
        self._number += 1
        number = self._number
        self.counts["connections"] += 1
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(near, far, self.plan.stream(number, "up"), near, far))
                group.create_task(
                    self._pump(far, near, self.plan.stream(number, "down"), near, far)
                )
        finally:
            del self._links[near]

    async def _pump(
        self,
        source: ServerConnection | ClientConnection,
        sink: ServerConnection | ClientConnection,
        chance: random.Random,
        near: ServerConnection,
        far: ClientConnection,
    ) -> None:
        held: list[str | bytes] = []
        while True:
            try:
                frame = await source.recv()
            except ConnectionClosed:
                break
            event = "pass" if self.is_calm else self.plan.choose(chance)
            self.counts[event] += 1
            match event:
                case "drop":
                    _abort(near, far)
                    return
                case "half_open":
                    near.transport.pause_reading()
                    far.transport.pause_reading()
                    await asyncio.gather(near.wait_closed(), far.wait_closed())
                    return
                case "stall":
                    await asyncio.sleep(self.plan.stall_s)
                case "reorder" if not held:
                    held.append(frame)
                    continue
            frames = [frame] * (2 if event == "duplicate" else 1) + held
            held = []
            with suppress(ConnectionClosed):
                for each in frames:
                    await sink.send(each)
        code = source.close_code
        if code is None or code == 1006:
            _abort(near, far)
        else:
            with suppress(Exception):
                await sink.close(code, source.close_reason or "")


@dataclass
class Supervisor:
    """Kills a server as a crash would and starts it again, at given moments."""

    server: ServerProcess
    kills: int = 0

    async def run(self, moments: Sequence[Callable[[], bool]]) -> None:
        """Kill and restart once for each moment, when it has come."""
        for has_come in moments:
            while not has_come():  # noqa: ASYNC110 – whoever plays knows nothing of this
                await asyncio.sleep(0.02)
            self.server.kill()
            self.kills += 1
            await asyncio.to_thread(self.server.start)


def _abort(near: ServerConnection, far: ClientConnection) -> None:
    for connection in (near, far):
        # Abortive close: the kernel sends RST, as after a crash of a machine on the way.
        connection.transport.abort()
