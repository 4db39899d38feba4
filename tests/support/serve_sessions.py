"""Worlds that misbehave in known ways, and a peer that speaks frames."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import websockets

from corral.serve import Action, Environment, Observation, State


class Do(Action):
    """What the world is to do with itself."""

    what: str = "count"
    value: Any = None


class Seen(Observation):
    """What it counted, and where it ran."""

    count: int
    thread: int
    big: str = ""


class Awkward(Environment[Do, Seen, State]):
    """Counts; on request it raises, hangs, blocks, or answers what it should not."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    HIDDEN_STATE = frozenset({"answer"})
    closed: list[int] = []
    """The thread of every ``close``."""
    released = threading.Event()
    """Lets those that hang go on."""

    def __init__(self) -> None:
        self.born = threading.get_ident()
        self.count = 0
        self.episode_id: str | None = None

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> Seen:
        """Start to count."""
        self.count = seed or 0
        self.episode_id = episode_id
        return self._seen()

    def step(self, action: Do, timeout_s: float | None = None, **kwargs: Any) -> Any:
        """Count, or do what is asked."""
        self.count += 1
        match action.what:
            case "raise":
                raise ValueError("the token is hunter2")
            case "exit":
                raise SystemExit(3)
            case "hang":
                self.released.wait(30)
            case "block":
                time.sleep(action.value)
            case "reward":
                return self._seen(reward=float(action.value))
            case "big":
                return self._seen(big="x" * action.value)
            case "nothing":
                return None
            case "end":
                return self._seen(done=True, reward=1.0)
        return self._seen()

    @property
    def state(self) -> State:
        """With the answer, which nobody may see before the end."""
        return State(episode_id=self.episode_id, step_count=self.count, answer="crane")

    def close(self) -> None:
        """Note that it was closed."""
        self.closed.append(threading.get_ident())

    def _seen(self, **more: Any) -> Seen:
        if self.REQUIRES_OWN_THREAD:
            assert threading.get_ident() == self.born, "called in another thread"
        return Seen(count=self.count, thread=self.born, **more)


class Loose(Awkward):
    """The same, where sessions share threads."""

    REQUIRES_OWN_THREAD = False


class Peer:
    """A client that sends frames and reads answers."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket

    async def ask(self, kind: str, data: Any = None, **more: Any) -> dict[str, Any]:
        """Send a frame and give the answer to it."""
        await self.send(kind, data, **more)
        return await self.read()

    async def send(self, kind: str, data: Any = None, **more: Any) -> None:
        """Send a frame."""
        frame = {"type": kind, **({} if data is None else {"data": data}), **more}
        await self.socket.send(json.dumps(frame))

    async def read(self, within_s: float = 10.0) -> dict[str, Any]:
        """The next frame."""
        async with asyncio.timeout(within_s):
            return json.loads(await self.socket.recv())

    async def closed(self, within_s: float = 10.0) -> int:
        """The code with which the server closes."""
        async with asyncio.timeout(within_s):
            with suppress(websockets.ConnectionClosed):
                async for _ in self.socket:
                    pass
        return self.socket.close_code


@asynccontextmanager
async def peer(address: str, *, is_extended: bool = False, query: str = "") -> AsyncIterator[Peer]:
    """A connection to ``/ws``."""
    subprotocols: Any = ["corral.v1"] if is_extended else None
    async with websockets.connect(
        f"ws://{address}/ws{query}", subprotocols=subprotocols, max_size=None, proxy=None
    ) as socket:
        yield Peer(socket)


async def until(condition: Any, within_s: float = 5.0) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - the condition is the server's
            await asyncio.sleep(0.01)
