"""The tools of an MCP server as an environment class."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic_core import to_json

from corral.env.io_thread import io_thread
from corral.env.signatures import ToolSpec
from corral.errors import InfrastructureFault
from corral.worlds.calling import calling_methods
from corral.worlds.mcp.connection import Connection, Server

Score = Callable[["McpEnvironment"], float | None]
"""From the environment after its episode to its reward; it reads ``calls`` and ``row``."""

Shown = Any
"""Text, or content blocks where a tool answers with pictures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCall:
    """A call that reached the server."""

    tool: str
    """As the server calls it."""
    arguments: dict[str, Any]
    answer: Shown
    is_error: bool


class McpTools:
    """A factory of environments with the tools of a server.

    ::

        factory = McpTools(Server(command=("mcp-server-time",)))
        factory = McpTools(Server(url="http://127.0.0.1:8000/mcp"), is_shared=True)

    Each environment has a server process (or an HTTP session) of its own, which every ``reset``
    starts anew, unless it is shared. The first one asks the server for its tools.
    """

    REQUIRES_OWN_THREAD = False

    def __init__(
        self, server: Server, *, score: Score | None = None, is_shared: bool = False
    ) -> None:
        """
        Args:
            server: Where it is.
            score: Makes the reward; without it the environment has none.
            is_shared: Whether one process, or session, serves all environments; for servers that
                remember nothing.
        """
        self._server, self._score, self._is_shared = server, score, is_shared
        self._class: type[McpEnvironment] | None = None
        self._lock = threading.Lock()

    def __call__(self) -> "McpEnvironment":
        """Make an environment.

        Raises:
            UsageError: There is no such program.
            InfrastructureFault: The server cannot be asked for its tools.
        """
        with self._lock:
            if self._class is None:
                self._class = _class_of(self._server, self._score, self._is_shared)
        return self._class()

    def __repr__(self) -> str:
        return f"McpTools({str(self._server)!r})"


class McpEnvironment:
    """One environment; subclasses have the server's tools as methods."""

    REQUIRES_OWN_THREAD = False

    _server: ClassVar[Server]
    _score: ClassVar[Score | None]
    _is_shared: ClassVar[bool]
    _common: ClassVar["Shared"]

    def __init__(self) -> None:
        self._own: Connection | None = None
        self._begin({})

    async def reset(self, **row: Any) -> str | None:
        """Start an episode, with a fresh server unless it is shared.

        Args:
            row: Kept as ``row`` for the score; the server is told nothing of it.
        """
        self._begin(row)
        connection = await io_thread().run(self._connected(is_fresh=True))
        return connection.instructions

    async def close(self) -> None:
        """End the server that is this environment's own."""
        own, self._own = self._own, None
        if own is not None:
            await io_thread().run(own.close())

    def _begin(self, row: dict[str, Any]) -> None:
        self.row = row
        self.calls: list[McpCall] = []
        self.won = False
        """Whether the score, once it was asked for, was 1 or more."""
        self._measure()

    async def _get_reward(self) -> float | None:
        score = type(self)._score
        assert score is not None
        reward = score(self)
        self.won = reward is not None and reward >= 1.0
        self._measure()
        return reward

    async def _call(self, name: str, arguments: dict[str, Any]) -> Shown:
        answer, is_error = await io_thread().run(self._answered(name, arguments))
        call = McpCall(tool=name, arguments=arguments, answer=answer, is_error=is_error)
        self.calls.append(call)
        self._measure()
        if is_error:
            raise ValueError(answer if isinstance(answer, str) else to_json(answer).decode())
        return answer

    async def _answered(self, name: str, arguments: dict[str, Any]) -> tuple[Shown, bool]:
        connection = await self._connected(is_fresh=False)
        try:
            result = await connection.call(name, arguments)
        except ValueError as error:
            return str(error), True
        return _content(result), bool(result.isError)

    async def _connected(self, *, is_fresh: bool) -> Connection:
        """The session to talk in; runs on the clients' event loop."""
        if self._is_shared:
            return await type(self)._common.connection()
        if is_fresh:
            if self._own is not None:
                await self._own.close()
            self._own = Connection(self._server)
            await self._own.open()
        if self._own is None:
            raise InfrastructureFault(f"{self._server} was closed: call reset() first.")
        return self._own

    def _measure(self) -> None:
        self.metrics: dict[str, float] = {
            "win": float(self.won),
            "calls": float(len(self.calls)),
            "failed_calls": float(sum(call.is_error for call in self.calls)),
        }


class Shared:
    """The one session of a server that all environments share; opened again if it has ended."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._opening: asyncio.Lock | None = None
        self._connection: Connection | None = None

    async def connection(self) -> Connection:
        """The session; runs on the clients' event loop."""
        self._opening = self._opening or asyncio.Lock()
        async with self._opening:
            if self._connection is None or not self._connection.is_open:
                self._connection = Connection(self._server)
                await self._connection.open()
            return self._connection


def _class_of(server: Server, score: Score | None, is_shared: bool) -> type[McpEnvironment]:
    tools = io_thread().call(_listed(server))
    members: dict[str, Any] = {
        "__doc__": f"The tools of {server}.",
        "_server": server,
        "_score": staticmethod(score) if score is not None else None,
        "_is_shared": is_shared,
        "_common": Shared(server),
    }
    if score is not None:
        members["get_reward"] = McpEnvironment._get_reward
    taken = [name for name in (*dir(McpEnvironment), *members, "done") if name[0] != "_"]
    taken += ["get_reward", "metrics", "reward_parts", "row", "calls", "won"]
    specs = [
        ToolSpec(
            name=tool.name,
            description=tool.description or "",
            parameters=tool.inputSchema,
            returns={"type": "string"},
        )
        for tool in tools
    ]
    members |= calling_methods(specs, taken=taken)
    return type("McpEnvironment", (McpEnvironment,), members)


async def _listed(server: Server) -> list[Any]:
    connection = Connection(server)
    try:
        await connection.open()
        return [tool for tool in await connection.tools() if not _wants_a_task(tool)]
    finally:
        await connection.close()


def _wants_a_task(tool: Any) -> bool:
    """Whether it can only be called as a task, which answers later, when it is asked again."""
    return getattr(tool.execution, "taskSupport", None) == "required"


def _content(result: Any) -> Shown:
    """What a tool answered: the texts, or blocks where there is a picture; else its data."""
    blocks = [_block(block.model_dump(mode="json", exclude_none=True)) for block in result.content]
    if any(block["type"] == "image_url" for block in blocks):
        return blocks
    if not blocks and result.structuredContent is not None:
        return to_json(result.structuredContent).decode()
    return "\n".join(block["text"] for block in blocks)


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    if block["type"] == "text":
        return {"type": "text", "text": block["text"]}
    if block["type"] == "image":
        url = f"data:{block['mimeType']};base64,{block['data']}"
        return {"type": "image_url", "image_url": {"url": url}}
    resource = block.get("resource", {})
    text = resource.get("text") if isinstance(resource, Mapping) else None
    return {"type": "text", "text": text or to_json(block).decode()}
