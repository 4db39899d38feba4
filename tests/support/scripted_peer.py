"""A WebSocket server that says exactly what a test tells it to say."""

import asyncio
import http
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from websockets.asyncio.server import ServerConnection, serve

Handler = Callable[["Peer", int], Awaitable[None]]


class Peer:
    """One accepted connection, as the handler of a test sees it."""

    def __init__(self, server: "ScriptedPeer", socket: ServerConnection) -> None:
        self.server = server
        self.socket = socket
        self.path = socket.request.path if socket.request else ""

    async def read(self) -> dict[str, Any]:
        frame = json.loads(await self.socket.recv())
        self.server.frames.append(frame)
        if frame.get("type") == "close":
            await self.socket.close(1000)
        return frame

    async def say(self, type: str, data: Any = None, **more: Any) -> None:
        await self.socket.send(json.dumps({"type": type, "data": data, **more}))

    async def hello(self, **data: Any) -> None:
        told = {"session_id": "s-1", "token": "secret", "lease_s": 5.0, "max_sessions": 8}
        await self.say("hello", {**told, "active_sessions": 1, "is_replayable": False, **data})

    async def observe(self, text: Any, *, id: int | None = None, **more: Any) -> None:
        extra = {} if id is None else {"id": id}
        data = {"observation": {"text": text}, "reward": None, "done": False, **more}
        await self.say("observation", data, **extra)

    async def answer(self, text: Any) -> dict[str, Any]:
        """Answer the next request with an observation."""
        frame = await self.read()
        await self.observe(text, id=frame.get("id"))
        return frame

    async def close(self, code: int = 1000) -> None:
        await self.socket.close(code)

    def cut(self) -> None:
        self.socket.transport.abort()


class ScriptedPeer:
    """Runs a handler per connection on a loop in a thread: ``handler(peer, which_connection)``."""

    def __init__(self, handler: Handler, *, subprotocols: tuple[str, ...] = ("corral.v1",)) -> None:
        self._handler = handler
        self.subprotocols = subprotocols
        self.frames: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.connections = 0
        self.refuse_with: int | None = None
        self.failures: list[BaseException] = []
        self._sockets: list[ServerConnection] = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "ScriptedPeer":
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        self._loop.close()
        assert self.failures == [], self.failures[:3]

    async def _run(self) -> None:
        async with serve(
            self._serve,
            "127.0.0.1",
            0,
            create_connection=self._accept,  # type: ignore[arg-type]
            select_subprotocol=self._select,  # type: ignore[arg-type]
            open_timeout=60,
            process_request=self._process,
            close_timeout=0.2,
            max_size=None,
            compression=None,
            ping_interval=None,
        ) as server:
            self.port = server.sockets[0].getsockname()[1]
            self._ready.set()
            await self._stop.wait()
        await self._leave_nothing_open()

    async def _leave_nothing_open(self) -> None:
        """Abort what a slow client left, and see every transport to its end.

        The library waits ``close_timeout`` for a client and goes on; a connection that was being
        accepted then is one it does not know of yet.
        """
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for socket in self._sockets:
                socket.transport.abort()
            await asyncio.wait(others, timeout=0.1)
        for socket in self._sockets:
            socket.transport.abort()
            await asyncio.shield(socket.connection_lost_waiter)

    def _accept(self, *args: Any, **kwargs: Any) -> ServerConnection:
        socket = ServerConnection(*args, **kwargs)
        self._sockets.append(socket)
        return socket

    def _select(self, _: ServerConnection, offered: Any) -> str | None:
        return next((name for name in offered if name in self.subprotocols), None)

    def _process(self, connection: ServerConnection, request: Any) -> Any:
        self.paths.append(request.path)
        self.headers.append(dict(request.headers.raw_items()))
        if self.refuse_with is not None:
            return connection.respond(http.HTTPStatus(self.refuse_with), "no\n")
        return None

    async def _serve(self, socket: ServerConnection) -> None:
        number = self.connections
        self.connections += 1
        peer = Peer(self, socket)
        try:
            await self._handler(peer, number)
        except Exception as error:  # noqa: BLE001 - told to the test
            from websockets.exceptions import ConnectionClosed

            if not isinstance(error, ConnectionClosed):
                self.failures.append(error)
