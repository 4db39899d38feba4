"""A small server of OpenEnv's protocol that does one thing wrong, if asked to.

``http://host:port/FAULT`` is a server of its own with that fault; ``/none`` has none. `FAULTS`
says which checks find which. It shares no code with the servers that are to be trusted.
"""

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

FAULTS: dict[str, set[str]] = {
    "none": set(),
    "health-is-degraded": {"health"},
    "metadata-name-is-no-string": {"metadata"},
    "schema-has-no-state": {"schema"},
    "openapi-lists-two-of-three-routes": {"openapi"},
    "reset-needs-a-body": {"http-reset"},
    "negative-seed-is-500": {"http-seed"},
    "http-step-has-no-done": {"http-step"},
    "bare-action-is-accepted": {"http-bad-step"},
    "http-state-is-wrapped": {"http-state"},
    "production-leaves-reset": {"production"},
    "task-names-are-case-sensitive": {"task-environment"},
    "bad-task-index-is-500": {"task-index"},
    "speaks-first": {"silent-first"},
    "reset-without-data-is-refused": {"ws-reset"},
    "step-wants-its-action-wrapped": {"ws-step"},
    "ws-state-is-wrapped": {"ws-state", "episode-id", "step-count"},
    "close-is-answered": {"ws-close"},
    "closes-with-1011": {"ws-close"},
    "reward-inside-observation": {"envelope"},
    "metadata-not-in-observation": {"envelope"},
    "episode-id-is-ignored": {"episode-id"},
    "step-count-starts-at-one": {"step-count"},
    "reset-keeps-step-count": {"step-count"},
    "invalid-json-ends-the-session": {"invalid-json"},
    "unknown-type-is-a-validation-error": {"unknown-type"},
    "validation-error-has-no-errors": {"invalid-envelope"},
    "closes-after-an-invalid-action": {"invalid-action"},
    "ignores-unknown-fields": {"invalid-action", "http-bad-step"},
    "exception-ends-the-session": {"execution-error"},
    "binary-frame-is-swallowed": {"no-object"},
    "answers-state-first": {"pipelining"},
    "refuses-without-a-frame": {"capacity-refusal"},
    "refusal-counts-wrong": {"capacity-refusal"},
    "refusal-does-not-close": {"capacity-refusal"},
    "frees-a-slot-twice": {"capacity-release"},
    "cut-connection-keeps-its-slot": {"capacity-release"},
    "no-factory-error": {"factory-error"},
    "sessions-share-state": {"isolation"},
    "closes-the-environment-twice": {"close-once"},
    "forgets-to-close-when-cut": {"close-once"},
    "slow-step-blocks": {"slow-step"},
    "mcp-empty-is-400": {"mcp-empty"},
    "mcp-parse-error-is-422": {"mcp-parse-error"},
    "mcp-unknown-method-is-internal": {"mcp-unknown-method"},
    "mcp-answer-loses-its-id": {"mcp-unknown-method"},
    "mcp-websocket-has-no-envelope": {"mcp-websocket"},
    "tools-have-null-descriptions": {"tools-list"},
    "tool-result-has-no-data": {"tools-call"},
    "unknown-tool-is-invalid-params": {"tools-call-errors"},
    "second-socket-may-attach": {"session-attach"},
    "close-ends-an-attached-session": {"session-close"},
    "unknown-session-is-a-new-one": {"session-unknown"},
    "listed-tools-have-no-input-schema": {"step-list-tools"},
    "step-call-has-no-tool-name": {"step-call-tool"},
    "tool-failure-is-an-error-frame": {"step-tool-failure"},
}
"""Each fault, and the checks that must fail for it: no other may."""

_SLOTS = 3
_TOOLS = [
    {
        "name": "add",
        "description": "Add two numbers.",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    }
]
_ACTION = {
    "type": "object",
    "properties": {
        "type": {"const": "call_tool", "default": "call_tool"},
        "tool_name": {"type": "string"},
        "arguments": {"type": "object", "default": {}},
    },
    "required": ["tool_name"],
    "additionalProperties": False,
}


class Refusal(Exception):
    """An error frame."""

    def __init__(self, code: str, message: str = "it is so", **more: Any) -> None:
        super().__init__(code)
        self.code = code
        self.frame = {"type": "error", "data": {"code": code, "message": message, **more}}


class RpcError(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, message: str = "it is so", data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, "data": data}


@dataclass
class Game:
    """The environment of one session."""

    episode_id: str | None = None
    steps: int = 0


@dataclass
class Server:
    """One server with at most one fault."""

    fault: str
    taken: int = 0
    made: int = 0
    closed: int = 0
    is_breaking: bool = False
    shared: Game = field(default_factory=Game)
    sessions: dict[str, Game] = field(default_factory=dict[str, Game])
    attached: set[str] = field(default_factory=set[str])
    closing: set[str] = field(default_factory=set[str])

    # Sessions

    def open(self) -> Game:
        """Take a slot."""
        if self.taken >= _SLOTS:
            slots = _SLOTS + (self.fault == "refusal-counts-wrong")
            raise Refusal("CAPACITY_REACHED", active_sessions=self.taken, max_sessions=slots)
        if self.is_breaking:
            self.is_breaking = False
            raise Refusal("FACTORY_ERROR", factory_name="Game")
        self.taken += 1
        self.made += 1
        return self.shared if self.fault == "sessions-share-state" else Game()

    def close(self, *, is_cut: bool = False) -> None:
        """Free the slot."""
        if not (is_cut and self.fault == "cut-connection-keeps-its-slot"):
            self.taken -= 1 + (self.fault == "frees-a-slot-twice" and self.taken > 1)
        if not (is_cut and self.fault == "forgets-to-close-when-cut"):
            self.closed += 1 + (self.fault == "closes-the-environment-twice")

    # What a game answers

    def reset(self, game: Game, data: dict[str, Any]) -> dict[str, Any]:
        """Start again."""
        game.episode_id = None if self.fault == "episode-id-is-ignored" else data.get("episode_id")
        if self.fault != "reset-keeps-step-count":
            game.steps = 1 if self.fault == "step-count-starts-at-one" else 0
        return self.observed({})

    def observed(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The envelope."""
        observation = {"metadata": {}, **fields}
        if self.fault == "metadata-not-in-observation":
            del observation["metadata"]
        if self.fault == "reward-inside-observation":
            observation["reward"] = 0.0
        return {"observation": observation, "reward": None, "done": False}

    def state(self, game: Game) -> dict[str, Any]:
        """The state."""
        return {
            "episode_id": game.episode_id,
            "step_count": game.steps,
            "environments_made": self.made,
            "environments_closed": self.closed,
        }

    def problems(self, action: Any) -> list[dict[str, Any]]:
        """What is wrong with an action."""
        if not isinstance(action, dict):
            return [{"type": "dict_type", "loc": ["data"], "msg": "no object"}]
        if action == {"type": "list_tools"}:
            return []
        found: list[dict[str, Any]] = []
        if not isinstance(action.get("tool_name"), str):
            found.append({"type": "string_type", "loc": ["tool_name"], "msg": "no text"})
        if not isinstance(action.get("arguments", {}), dict):
            found.append({"type": "dict_type", "loc": ["arguments"], "msg": "no object"})
        unknown = set(action) - set(_ACTION["properties"])
        if unknown and self.fault != "ignores-unknown-fields":
            found.append({"type": "extra_forbidden", "loc": sorted(unknown), "msg": "unknown"})
        return found

    async def step(self, game: Game, action: dict[str, Any]) -> dict[str, Any]:
        """Do an action that is valid."""
        game.steps += 1
        if action.get("type") == "list_tools":
            tools = [
                {
                    "name": tool["name"],
                    "description": tool["description"],
                    "input_schema": tool["inputSchema"],
                }
                for tool in _TOOLS
            ]
            if self.fault == "listed-tools-have-no-input-schema":
                del tools[0]["input_schema"]
            return self.observed({"tools": tools})
        name, arguments = action["tool_name"], action.get("arguments", {})
        fields = {"tool_name": name, "result": None, "error": None}
        match name:
            case "explode":
                raise Refusal("EXECUTION_ERROR")
            case "slow" if self.fault == "slow-step-blocks":
                time.sleep(2.0)  # noqa: ASYNC251 – this is the fault
            case "slow":
                await asyncio.sleep(0.3)
            case "break":
                self.is_breaking = True
            case "add":
                fields["result"] = {"data": arguments.get("a", 0) + arguments.get("b", 0)}
            case _ if self.fault == "tool-failure-is-an-error-frame":
                raise Refusal("EXECUTION_ERROR")
            case _:
                fields["error"] = {"error_type": "tool_not_found", "message": "unknown"}
        if self.fault == "step-call-has-no-tool-name":
            del fields["tool_name"]
        return self.observed(fields)

    # JSON-RPC

    def rpc(self, message: Any, *, is_socket: bool = False) -> dict[str, Any]:
        """Answer one JSON-RPC message."""
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": None}
        try:
            if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
                raise RpcError(-32600)
            if self.fault != "mcp-answer-loses-its-id":
                answer["id"] = message.get("id")
            answer["result"] = self._call(message["method"], message.get("params", {}), is_socket)
        except RpcError as error:
            answer["error"] = error.error
        if is_socket and self.fault == "mcp-websocket-has-no-envelope":
            del answer["jsonrpc"]
        return answer

    def _call(self, method: str, params: dict[str, Any], is_socket: bool) -> dict[str, Any]:
        session = params.get("session_id")
        if method != "openenv/session/create" and session and session not in self.sessions:
            raise RpcError(-32602)
        match method:
            case "tools/list" if self.fault == "tools-have-null-descriptions":
                return {"tools": [{**tool, "description": None} for tool in _TOOLS]}
            case "tools/list":
                return {"tools": _TOOLS}
            case "tools/call":
                return self._call_tool(params)
            case "openenv/session/create":
                try:
                    game = self.open()
                except Refusal as refusal:
                    raise RpcError(-32000, data=refusal.frame["data"]) from None
                session = uuid.uuid4().hex
                self.sessions[session] = game
                return {"session_id": session}
            case "openenv/session/close" if session:
                is_free = session not in self.attached
                if not is_free and self.fault != "close-ends-an-attached-session":
                    self.closing.add(session)
                    return {"session_id": session, "closed": False, "closing": True}
                del self.sessions[session]
                self.close()
                return {"session_id": session, "closed": True}
        is_internal = self.fault == "mcp-unknown-method-is-internal" and not is_socket
        raise RpcError(-32603 if is_internal else -32601)

    def _call_tool(self, params: dict[str, Any]) -> dict[str, Any]:
        if "name" not in params:
            raise RpcError(-32602)
        if params["name"] != "add":
            raise RpcError(-32602 if self.fault == "unknown-tool-is-invalid-params" else -32603)
        total = params["arguments"]["a"] + params["arguments"]["b"]
        result = {
            "content": [{"type": "text", "text": str(total)}],
            "data": total,
            "is_error": False,
        }
        if self.fault == "tool-result-has-no-data":
            del result["data"]
        return result


def _refused(kind: str) -> JSONResponse:
    return JSONResponse({"detail": [{"type": kind, "loc": ["body"], "msg": kind}]}, 422)


def _http_routes(server: Server) -> list[Route]:
    fault = server.fault
    is_production = fault == "production-leaves-reset"

    async def health(_: Request) -> Response:
        is_bad = fault == "health-is-degraded"
        return JSONResponse({"status": "degraded" if is_bad else "healthy"})

    async def metadata(_: Request) -> Response:
        name = None if fault == "metadata-name-is-no-string" else "Game"
        return JSONResponse({"name": name, "description": "A game.", "version": "1.0.0"})

    async def schema(_: Request) -> Response:
        found: dict[str, Any] = {"action": _ACTION, "observation": {}, "state": {}}
        if fault == "schema-has-no-state":
            del found["state"]
        return JSONResponse(found)

    async def openapi(_: Request) -> Response:
        listed = ["/health", "/reset", "/step", "/state"]
        if is_production:
            listed = ["/health"]
        if fault == "openapi-lists-two-of-three-routes":
            listed.remove("/state")
        document = {"openapi": "3.1.0", "info": {"version": "1.0.0"}}
        return JSONResponse({**document, "paths": {path: {} for path in listed}})

    async def reset(request: Request) -> Response:
        body = await request.body()
        if not body and fault == "reset-needs-a-body":
            return _refused("missing")
        data = json.loads(body or b"{}")
        if data.get("seed", 0) < 0:
            if fault == "negative-seed-is-500":
                return PlainTextResponse("Internal Server Error", 500)
            return _refused("greater_than_equal")
        return JSONResponse({**server.reset(Game(), data), "metadata": None})

    async def step(request: Request) -> Response:
        body = await request.json()
        action = body.get("action")
        if "action" not in body and fault == "bare-action-is-accepted":
            action = body
        if server.problems(action):
            return _refused("missing")
        answer = await server.step(Game(), action)
        if fault == "http-step-has-no-done":
            del answer["done"]
        return JSONResponse(answer)

    async def state(_: Request) -> Response:
        found = server.state(Game())
        return JSONResponse({"state": found} if fault == "http-state-is-wrapped" else found)

    async def mcp(request: Request) -> Response:
        try:
            message = await request.json()
        except ValueError:
            if fault == "mcp-parse-error-is-422":
                return _refused("json_invalid")
            error = {"code": -32700, "message": "Parse error", "data": None}
            return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error})
        is_bad = fault == "mcp-empty-is-400" and message == {}
        return JSONResponse(server.rpc(message), 400 if is_bad else 200)

    async def environments(_: Request) -> Response:
        return JSONResponse(["Game"])

    async def tasks(request: Request) -> Response:
        name, what = request.path_params["name"], request.path_params["what"]
        known = name if fault == "task-names-are-case-sensitive" else name.lower()
        if known not in ("Game", "game") or (known == "game" and known != name.lower()):
            return JSONResponse({"detail": f"unknown environment {name!r}"}, 404)
        if fault == "task-names-are-case-sensitive" and name != "Game":
            return JSONResponse({"detail": f"unknown environment {name!r}"}, 404)
        if what == "splits":
            return JSONResponse([{"name": "train", "type": "train"}])
        if what == "num_tasks":
            return JSONResponse({"num_tasks": 1})
        if (await request.json())["index"] > 0:
            if fault == "bad-task-index-is-500":
                return PlainTextResponse("Internal Server Error", 500)
            return JSONResponse({"detail": "Invalid task index"}, 400)
        return JSONResponse({"task": {}})

    routes = [
        Route("/health", health),
        Route("/metadata", metadata),
        Route("/schema", schema),
        Route("/openapi.json", openapi),
        Route("/mcp", mcp, methods=["POST"]),
        Route("/list_environments", environments),
        Route("/{name}/{what}", tasks, methods=["GET", "POST"]),
        Route("/reset", reset, methods=["POST"]),
    ]
    if not is_production:
        routes += [Route("/step", step, methods=["POST"]), Route("/state", state)]
    return routes


class _Connection:
    """One socket on /ws."""

    def __init__(self, server: Server, socket: WebSocket) -> None:
        self.server, self.socket, self.fault = server, socket, server.fault

    async def play(self) -> None:
        """Open a session or attach to one, and answer until it ends."""
        await self.socket.accept()
        session = self.socket.query_params.get("session_id")
        if session and self.fault == "unknown-session-is-a-new-one":
            session = session if session in self.server.sessions else None
        try:
            game = self._attach(session) if session else self.server.open()
        except Refusal as refusal:
            await self._refuse(refusal)
            return
        is_cut = True
        try:
            if self.fault == "speaks-first" and session is None:
                await self.socket.send_json({"type": "welcome", "data": {}})
            await self._answer_all(game)
            is_cut = False
        except WebSocketDisconnect:
            pass
        finally:
            if session is None:
                self.server.close(is_cut=is_cut)
            else:
                self.server.attached.discard(session)
                if session in self.server.closing:
                    del self.server.sessions[session]
                    self.server.close()
        if not is_cut:
            await self.socket.close(1011 if self.fault == "closes-with-1011" else 1000)

    def _attach(self, session: str) -> Game:
        server = self.server
        is_second = session in server.attached and self.fault != "second-socket-may-attach"
        if session not in server.sessions or is_second:
            raise Refusal("SESSION_ERROR")
        server.attached.add(session)
        return server.sessions[session]

    async def _refuse(self, refusal: Refusal) -> None:
        is_full = refusal.code == "CAPACITY_REACHED"
        is_silent = self.fault == "refuses-without-a-frame" and is_full
        is_silent |= self.fault == "no-factory-error" and refusal.code == "FACTORY_ERROR"
        if not is_silent:
            await self.socket.send_json(refusal.frame)
        if self.fault == "refusal-does-not-close" and is_full:
            while (await self.socket.receive())["type"] != "websocket.disconnect":
                pass
            return
        await self.socket.close()

    async def _answer_all(self, game: Game) -> None:
        waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

        async def read() -> None:
            while True:
                message = await self.socket.receive()
                waiting.put_nowait(message)
                if message["type"] == "websocket.disconnect":
                    return

        reading = asyncio.create_task(read())
        try:
            while True:
                messages = [await waiting.get()]
                await asyncio.sleep(0.002)
                while not waiting.empty():
                    messages.append(waiting.get_nowait())
                if self.fault == "answers-state-first":
                    messages.sort(key=lambda message: '"state"' not in (message.get("text") or ""))
                for message in messages:
                    if message["type"] == "websocket.disconnect":
                        raise WebSocketDisconnect
                    if not await self._answer(game, message):
                        return
        finally:
            reading.cancel()

    async def _answer(self, game: Game, message: dict[str, Any]) -> bool:
        """Answer one message; False ends the session."""
        text = message.get("text")
        if text is None and self.fault == "binary-frame-is-swallowed":
            return True
        try:
            try:
                frame = json.loads(text if text is not None else "")
            except ValueError:
                raise Refusal("INVALID_JSON") from None
            if not isinstance(frame, dict):
                raise Refusal("INVALID_JSON")
            if frame.get("type") == "close":
                if self.fault == "close-is-answered":
                    await self.socket.send_json({"type": "closed", "data": {}})
                return False
            answer = await self._answered(game, frame)
        except Refusal as refusal:
            await self.socket.send_json(refusal.frame)
            return not (
                (refusal.code, self.fault)
                in {
                    ("INVALID_JSON", "invalid-json-ends-the-session"),
                    ("EXECUTION_ERROR", "exception-ends-the-session"),
                }
                or (
                    self.fault == "closes-after-an-invalid-action"
                    and refusal.code == "VALIDATION_ERROR"
                    and "data" in frame
                )
            )
        await self.socket.send_json(answer)
        return True

    async def _answered(self, game: Game, frame: dict[str, Any]) -> dict[str, Any]:
        server = self.server
        match frame.get("type"):
            case "reset":
                data = frame.get("data", None if "data" in frame else {})
                is_refused = self.fault == "reset-without-data-is-refused" and "data" not in frame
                if is_refused or not isinstance(data, dict):
                    raise Refusal("VALIDATION_ERROR", errors=[{"type": "missing"}])
                return {"type": "observation", "data": server.reset(game, data)}
            case "step":
                action = frame.get("data")
                if self.fault == "step-wants-its-action-wrapped" and isinstance(action, dict):
                    action = action.get("action")
                errors = server.problems(action)
                if errors:
                    if "data" not in frame and self.fault == "validation-error-has-no-errors":
                        raise Refusal("VALIDATION_ERROR")
                    raise Refusal("VALIDATION_ERROR", errors=errors)
                assert isinstance(action, dict)
                return {"type": "observation", "data": await server.step(game, action)}
            case "state":
                state = server.state(game)
                if self.fault == "ws-state-is-wrapped":
                    state = {"state": state}
                return {"type": "state", "data": state}
            case "mcp":
                return {"type": "mcp", "data": server.rpc(frame.get("data"), is_socket=True)}
        is_odd = self.fault == "unknown-type-is-a-validation-error"
        raise Refusal("VALIDATION_ERROR" if is_odd else "UNKNOWN_TYPE", errors=[{}])


def _app(fault: str) -> Starlette:
    server = Server(fault)

    async def play(socket: WebSocket) -> None:
        await _Connection(server, socket).play()

    async def mcp(socket: WebSocket) -> None:
        await socket.accept()
        try:
            while True:
                message = await socket.receive_json()
                await socket.send_json(server.rpc(message, is_socket=True))
        except WebSocketDisconnect:
            pass

    sockets = [WebSocketRoute("/ws", play), WebSocketRoute("/mcp", mcp)]
    return Starlette(routes=[*_http_routes(server), *sockets])


def broken_app() -> Callable[..., Awaitable[None]]:
    """One server for each fault, under the fault's name."""
    servers = {fault: _app(fault) for fault in FAULTS}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await servers["none"](scope, receive, send)
            return
        if scope["path"] == "/health":
            await PlainTextResponse("ok")(scope, receive, send)
            return
        _, fault, rest = scope["path"].split("/", 2)
        await servers[fault](scope | {"path": f"/{rest}"}, receive, send)

    return app
