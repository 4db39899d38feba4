"""Items 18 to 21: MCP over HTTP, over WebSocket, and through step."""

from collections.abc import Mapping
from typing import Any

from corral.serve.check.target import Target, error_of
from corral.serve.check.verdict import Check, CheckFailed, CheckSkipped, make_check, require
from corral.serve.check.wire import Closed

_INVALID_REQUEST, _NO_METHOD, _INVALID_PARAMS = -32600, -32601, -32602
_FAILED, _PARSE_ERROR = -32603, -32700


async def mcp_empty(target: Target) -> None:
    """POST /mcp with {} is answered with 200 and the JSON-RPC error -32600."""
    _require_error("POST /mcp {}", await target.post("/mcp", {}), _INVALID_REQUEST)


async def mcp_parse_error(target: Target) -> None:
    """POST /mcp with broken JSON is answered with 200 and the JSON-RPC error -32700."""
    answer = await target.post("/mcp", b"{not json")
    _require_error("POST /mcp {not json", answer, _PARSE_ERROR)


async def mcp_unknown_method(target: Target) -> None:
    """An unknown method is the JSON-RPC error -32601, and the answer has the request's id."""
    sent = {"jsonrpc": "2.0", "id": 41, "method": "corral/no_such_method", "params": {}}
    answer = await target.post("/mcp", sent)
    _require_error(sent, answer, _NO_METHOD)
    require(answer.json.get("id") == 41, sent=sent, came=answer, expected="the same id")


async def mcp_without_tools(target: Target) -> None:
    """Without MCP in the world, tools/list is the JSON-RPC error -32603."""
    if target.facts.tools is not None:
        raise CheckSkipped("the world has MCP")
    sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    _require_error(sent, await target.post("/mcp", sent), _FAILED)


async def mcp_websocket(target: Target) -> None:
    """WebSocket /mcp speaks the same JSON-RPC, and mcp frames on /ws carry it."""
    sent = {"jsonrpc": "2.0", "id": 7, "method": "corral/no_such_method", "params": {}}
    socket = await target.connect("/mcp")
    try:
        came = await socket.ask(sent)
        _require_code(f"on /mcp: {sent}", came, _NO_METHOD)
    finally:
        await socket.connection.close()
    async with target.session() as socket:
        frame = {"type": "mcp", "data": sent}
        came = await socket.ask(frame)
        require(came.get("type") == "mcp", sent=frame, came=came, expected="a frame of type mcp")
        _require_code(frame, came.get("data"), _NO_METHOD)


async def tools_list(target: Target) -> None:
    """tools/list describes every tool in a string and has its inputSchema."""
    target.needs_tools()
    answer = await target.rpc("tools/list")
    tools = answer.get("result", {}).get("tools")
    for tool in tools or ():
        require(
            isinstance(tool.get("description"), str) and isinstance(tool.get("inputSchema"), dict),
            sent="tools/list",
            came=tool,
            expected="a string as description and an object as inputSchema",
        )


async def tools_call(target: Target) -> None:
    """tools/call answers with content, data and is_error."""
    call = target.needs_call()
    answer = await target.rpc("tools/call", **call)
    result = answer.get("result")
    require(
        isinstance(result, dict)
        and isinstance(result.get("content"), list)
        and {"data", "is_error"} <= set(result),
        sent=call,
        came=answer,
        expected="a result with content (a list), data and is_error",
    )


async def tools_call_errors(target: Target) -> None:
    """tools/call without a name is -32602, and with an unknown one -32603."""
    target.needs_tools()
    for params, code in (
        ({"arguments": {}}, _INVALID_PARAMS),
        ({"name": "no_such_tool_3f1c", "arguments": {}}, _FAILED),
    ):
        sent = {"method": "tools/call", "params": params}
        _require_code(sent, await target.rpc("tools/call", **params), code)


async def session_attach(target: Target) -> None:
    """A session made over /mcp is shared with the one socket that attaches to it."""
    session = await _create(target)
    try:
        socket = await target.connect(f"/ws?session_id={session}")
        try:
            await target.reset(socket, episode_id="corral-check-s")
            await target.state(socket)
            second = await target.connect(f"/ws?session_id={session}")
            await _require_refused(second, "a second socket for the same session")
            if target.facts.tool_call is not None:
                answer = await target.rpc(
                    "tools/call", **target.facts.tool_call, session_id=session
                )
                require(
                    "result" in answer,
                    sent="tools/call with the session_id",
                    came=answer,
                    expected="a result",
                )
            await target.state(socket)
        finally:
            await socket.leave()
    finally:
        await target.rpc("openenv/session/close", session_id=session)


async def session_close(target: Target) -> None:
    """openenv/session/close ends a free session at once, and an attached one at its end."""
    session = await _create(target)
    answer = await target.rpc("openenv/session/close", session_id=session)
    result = answer.get("result", {})
    require(
        result.get("closed") is True and result.get("session_id") == session,
        sent="openenv/session/close",
        came=answer,
        expected="the session_id and closed: true",
    )
    gone = await target.rpc("tools/list", session_id=session)
    require("error" in gone, sent="tools/list in that session", came=gone, expected="an error")
    session = await _create(target)
    socket = await target.connect(f"/ws?session_id={session}")
    try:
        await target.state(socket)
        answer = await target.rpc("openenv/session/close", session_id=session)
        result = answer.get("result", {})
        require(
            result.get("closed") is False and result.get("closing") is True,
            sent="openenv/session/close of an attached session",
            came=answer,
            expected="closed: false, closing: true",
        )
        await target.state(socket)
    finally:
        await socket.leave()


async def session_unknown(target: Target) -> None:
    """Attaching to an unknown session is refused with SESSION_ERROR, then the close."""
    socket = await target.connect("/ws?session_id=no-such-session")
    await _require_refused(socket, "a connection to /ws?session_id=no-such-session")


async def step_list_tools(target: Target) -> None:
    """A step with list_tools lists the tools with string descriptions and input_schema."""
    _needs_tool_steps(target)
    async with target.episode() as socket:
        sent = {"type": "step", "data": {"type": "list_tools"}}
        came = await socket.ask(sent)
        tools = _observation_of(came).get("tools")
        require(
            isinstance(tools, list)
            and all(
                isinstance(tool, dict)
                and isinstance(tool.get("name"), str)
                and isinstance(tool.get("description"), str)
                and isinstance(tool.get("input_schema"), dict)
                for tool in tools
            ),
            sent=sent,
            came=came,
            expected="an observation with tools: name, description and input_schema of each",
        )


async def step_call_tool(target: Target) -> None:
    """A step with call_tool calls the tool."""
    _needs_tool_steps(target)
    call = target.needs_call()
    async with target.episode() as socket:
        sent = _call_frame(call["name"], call["arguments"])
        came = await socket.ask(sent)
        observation = _observation_of(came)
        require(
            observation.get("tool_name") == call["name"] and not observation.get("error"),
            sent=sent,
            came=came,
            expected="an observation with tool_name and result, without an error",
        )


async def step_tool_failure(target: Target) -> None:
    """A tool that fails in a step is an observation with error_type, not an error frame."""
    _needs_tool_steps(target)
    async with target.episode() as socket:
        sent = _call_frame("no_such_tool_3f1c", {})
        came = await socket.ask(sent)
        error = _observation_of(came).get("error")
        require(
            isinstance(error, dict) and error.get("error_type") == "tool_not_found",
            sent=sent,
            came=came,
            expected="an observation with error.error_type tool_not_found",
        )
        came = await socket.ask({"type": "state"})
        require(came.get("type") == "state", sent="state, after that", came=came, expected="state")


def _needs_tool_steps(target: Target) -> None:
    """Skip where the action is no tool call, or no action works."""
    target.needs_tools()
    target.action()
    schema = (target.facts.schemas or {}).get("action")
    properties = set(schema.get("properties", ())) if isinstance(schema, dict) else set[str]()
    if not (properties <= {"metadata"} or "tool_name" in properties):
        raise CheckSkipped("the world's action is of its own type, not a tool call")


def _call_frame(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    data = {"type": "call_tool", "tool_name": name, "arguments": arguments}
    return {"type": "step", "data": data}


def _observation_of(came: Any) -> Mapping[str, Any]:
    data = came.get("data")
    found = data.get("observation") if isinstance(data, dict) else None
    return found if isinstance(found, dict) else {}


async def _create(target: Target) -> str:
    answer = await target.rpc("openenv/session/create")
    session = answer.get("result", {}).get("session_id")
    if not isinstance(session, str):
        raise CheckFailed(sent="openenv/session/create", came=answer, expected="a session_id")
    return session


async def _require_refused(socket: Any, sent: str) -> None:
    try:
        came = await socket.receive()
        require(
            error_of(came).get("code") == "SESSION_ERROR",
            sent=sent,
            came=came,
            expected="an error frame with the code SESSION_ERROR",
        )
        end = await socket.receive()
        require(isinstance(end, Closed), sent="nothing, after that", came=end, expected="a close")
    finally:
        await socket.leave()


def _require_error(sent: Any, answer: Any, code: int) -> None:
    require(answer.status == 200, sent=sent, came=answer, expected="status 200")
    _require_code(sent, answer.json, code)


def _require_code(sent: Any, came: Any, code: int) -> None:
    is_envelope = isinstance(came, dict) and came.get("jsonrpc") == "2.0"
    require(
        is_envelope and error_of(came).get("code") == code,
        sent=sent,
        came=came,
        expected=f'"jsonrpc": "2.0" and an error with the code {code}',
    )


MCP_CHECKS: tuple[Check, ...] = (
    make_check(mcp_empty, 2, 18),
    make_check(mcp_parse_error, 18),
    make_check(mcp_unknown_method, 18),
    make_check(mcp_without_tools, 18),
    make_check(mcp_websocket, 18),
    make_check(tools_list, 19),
    make_check(tools_call, 19),
    make_check(tools_call_errors, 19),
    make_check(session_attach, 20),
    make_check(session_close, 20),
    make_check(session_unknown, 20),
    make_check(step_list_tools, 21),
    make_check(step_call_tool, 21),
    make_check(step_tool_failure, 21),
)
