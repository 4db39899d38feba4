"""The server under examination, and what is known of it before the checks begin."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from corral.serve.check.verdict import CheckFailed, CheckSkipped, require
from corral.serve.check.wire import (
    Closed,
    Frame,
    HttpAnswer,
    Silence,
    Socket,
    ask_http,
    open_socket,
)

_TRIES, _PAUSE_S = 15, 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """Actions that make a world show what no derived action can. None: that check is skipped."""

    action: Any = None
    """An action that always works; by default one is derived from ``/schema``."""
    reset: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What every ``reset`` needs."""
    failing: Any = None
    """An action during which the world raises."""
    slow: Any = None
    """An action that takes some seconds (a minute, where the minute is to be examined)."""
    large: Any = None
    """An action whose observation has 20 MB or more."""
    breaking: Any = None
    """An action after which the constructor of the next session fails, once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the survey found; None where the server did not say."""

    schemas: Mapping[str, Any] | None = None
    paths: frozenset[str] | None = None
    """Of the OpenAPI document."""
    tools: tuple[Mapping[str, Any], ...] | None = None
    """None for a world without MCP."""
    tool_call: Mapping[str, Any] | None = None
    """``name`` and ``arguments`` of a call that works."""
    action: Any = None
    why_no_action: str = "the survey did not run"
    refused: tuple[Any, Any] | None = None
    """An action derived from the server's own schema that it called invalid, and its answer."""
    is_open: bool = False
    """Whether the world goes on after the action (``done`` is false)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One server, and how to reach it."""

    url: str
    probes: Probes = field(default_factory=Probes)
    facts: Facts = field(default_factory=Facts)
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout_s: float = 10.0
    refusal_wait_s: float = 90.0
    """How long a server may let a client wait for a slot before it refuses."""
    most_sessions: int = 32
    """How many sessions are opened to find the capacity."""

    async def get(self, path: str) -> HttpAnswer:
        """GET."""
        return await ask_http(self.url, "GET", path, headers=self.headers, timeout_s=self.timeout_s)

    async def post(self, path: str, body: Any = None) -> HttpAnswer:
        """POST; without a body for None."""
        return await ask_http(
            self.url, "POST", path, body=body, headers=self.headers, timeout_s=self.timeout_s
        )

    async def rpc(self, method: str, **params: Any) -> Mapping[str, Any]:
        """Call a JSON-RPC method over POST /mcp; the answer is a JSON object."""
        sent = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = await self.post("/mcp", sent)
        require(
            answer.status == 200 and isinstance(answer.json, dict),
            sent=sent,
            came=answer,
            expected="status 200 and a JSON-RPC object",
        )
        return answer.json

    async def connect(self, path: str = "/ws") -> Socket:
        """Open a WebSocket; nothing is sent."""
        return await open_socket(self.url, path, headers=self.headers, timeout_s=self.timeout_s)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Socket]:
        """A WebSocket session that is known to have a slot; closed at the end."""
        socket = await self.connect()
        came = await first_answer(socket, self.timeout_s)
        for _ in range(_TRIES):
            if error_of(came).get("code") != "CAPACITY_REACHED":
                break
            # The session before this one may not be quite over.
            await socket.leave()
            await asyncio.sleep(_PAUSE_S)
            socket = await self.connect()
            came = await first_answer(socket, self.timeout_s)
        try:
            require(
                not isinstance(came, Closed | Silence) and not _is_refusal(came),
                sent="a connection to /ws, and state",
                came=came,
                expected="a session",
            )
            yield socket
        finally:
            await socket.leave()

    @asynccontextmanager
    async def episode(self, **arguments: Any) -> AsyncIterator[Socket]:
        """A session after its first reset."""
        async with self.session() as socket:
            await self.reset(socket, **arguments)
            yield socket

    async def reset(self, socket: Socket, **arguments: Any) -> Mapping[str, Any]:
        """Reset; the ``data`` of the answer."""
        sent = {"type": "reset", "data": {**self.probes.reset, **arguments}}
        return self._observation(sent, await socket.ask(sent))

    async def step(self, socket: Socket, timeout_s: float | None = None) -> Mapping[str, Any]:
        """Do the action that works; the ``data`` of the answer."""
        sent = {"type": "step", "data": self.action()}
        return self._observation(sent, await socket.ask(sent, timeout_s))

    async def state(self, socket: Socket) -> Mapping[str, Any]:
        """Ask for the state; the ``data`` of the answer."""
        came = await socket.ask({"type": "state"})
        data = came.get("data")
        if came.get("type") != "state" or not isinstance(data, dict):
            raise CheckFailed(sent={"type": "state"}, came=came, expected="a state frame")
        return data

    def action(self) -> Any:
        """An action that works, or skip."""
        if self.facts.action is None:
            raise CheckSkipped(f"no action is known that works: {self.facts.why_no_action}")
        return self.facts.action

    def simulation(self) -> None:
        """Skip where the server does not offer /reset, /step and /state."""
        if self.facts.paths is not None and not self.facts.paths & {"/reset", "/step", "/state"}:
            raise CheckSkipped("the server is in production mode")

    def needs_tools(self) -> tuple[Mapping[str, Any], ...]:
        """The world's tools, or skip."""
        if not self.facts.tools:
            raise CheckSkipped("the world has no MCP tools")
        return self.facts.tools

    def needs_call(self) -> Mapping[str, Any]:
        """A tool call that works, or skip."""
        self.needs_tools()
        if self.facts.tool_call is None:
            raise CheckSkipped("no tool call is known that works; give one with --action")
        return self.facts.tool_call

    def _observation(self, sent: Any, came: Frame) -> Mapping[str, Any]:
        data = came.get("data")
        if came.get("type") != "observation" or not isinstance(data, dict):
            raise CheckFailed(sent=sent, came=came, expected="an observation frame")
        return data


async def first_answer(socket: Socket, timeout_s: float) -> Frame:
    """Ask for the state and skip what is no answer to that."""
    came = await socket.ask({"type": "state"}, timeout_s)
    for _ in range(2):
        if not isinstance(came, dict) or came.get("type") in ("state", "error"):
            break
        came = await socket.receive(timeout_s)
    return came


def error_of(came: Any) -> Mapping[str, Any]:
    """The ``data`` of an error frame, or the ``error`` of a JSON-RPC answer; {} for others."""
    if not isinstance(came, Mapping):
        return {}
    found = came.get("data") if came.get("type") == "error" else came.get("error")
    return found if isinstance(found, dict) else {}


def _is_refusal(came: Frame) -> bool:
    return error_of(came).get("code") in ("CAPACITY_REACHED", "FACTORY_ERROR", "SESSION_ERROR")
