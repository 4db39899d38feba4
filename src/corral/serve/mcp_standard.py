"""The standard MCP protocol over HTTP, beside OpenEnv's dialect on the same ``/mcp``.

An MCP session is a session of the server: ``initialize`` takes a slot and starts an episode,
``DELETE`` (or the idle limit) frees it. What ``reset`` is called with comes from the client's
experimental capability ``corral/reset`` or, for clients that can be given no more than a URL and
headers, as JSON from the header ``Corral-Reset``. What ``reset`` answered are the ``instructions``
of the answer, which clients show to their model, and in full its ``_meta["corral/reset"]``.

The session's id, in ``Mcp-Session-Id``, is one for ``/ws?session_id=`` too: there whoever runs the
agent can end the episode and get its reward.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from corral.serve.asgi import Scope, Send
from corral.serve.faults import Code, InvalidRequest, ServeFault
from corral.serve.json_http import send_json
from corral.serve.mcp import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_JSON,
    PARSE_ERROR,
    SERVER_ERROR,
    RpcError,
)
from corral.serve.mcp_content import instructions_of, standard_blocks
from corral.serve.session import Owner, Session
from corral.serve.sessions import Sessions
from corral.serve.world import Observed, ToolDescription

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Of the protocol, oldest first. What is served here is the same in all of them."""
SESSION_HEADER = b"mcp-session-id"
REVISION_HEADER = b"mcp-protocol-version"
RESET_HEADER = b"corral-reset"
RESET_CAPABILITY = "corral/reset"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """An HTTP answer."""

    status: int
    content: Any = None
    headers: tuple[tuple[bytes, bytes], ...] = ()


class StandardMcpServer:
    """The standard protocol on ``/mcp``."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def wants(self, scope: Scope, payload: Any) -> bool:
        """Whether a request is a standard client's; ``payload`` is the JSON of a POST."""
        names = {name.lower() for name, _ in scope["headers"]}
        if SESSION_HEADER in names or REVISION_HEADER in names:
            return True
        return isinstance(payload, dict) and payload.get("method") == "initialize"

    async def answer(self, scope: Scope, payload: Any, send: Send) -> None:
        """Answer one HTTP request; ``payload`` is what `parsed` made of a POST's body."""
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if scope["method"] == "POST":
            answer = await self._post(headers, payload)
        elif scope["method"] == "DELETE":
            answer = await self._delete(headers)
        else:  # GET would open a stream; this server never speaks unasked
            refused = {"detail": "Method Not Allowed"}
            answer = _Answer(status=405, content=refused, headers=((b"allow", b"POST, DELETE"),))
        await send_json(send, answer.status, answer.content, answer.headers)

    async def _post(self, headers: Mapping[bytes, str], payload: Any) -> _Answer:
        request_id: Any = None
        try:
            message = _message(payload)
            request_id = message.get("id")
            _check_revision(headers)
            if message.get("method") == "initialize":
                return await self._initialize(request_id, message.get("params", {}), headers)
            session = self._session(headers)
            if "method" not in message or request_id is None:
                return _Answer(status=202)  # a notification, or the answer to a question never put
            result = await self._result(session, message["method"], message.get("params", {}))
        except RpcError as error:
            failed = _failure(request_id, error.code, str(error), error.data)
            return _Answer(status=error.status, content=failed)
        except ServeFault as fault:
            return _Answer(status=200, content=_failure(request_id, *_rpc_code(fault)))
        return _Answer(status=200, content=_success(request_id, result))

    async def _initialize(
        self, request_id: Any, params: Mapping[str, Any], headers: Mapping[bytes, str]
    ) -> _Answer:
        if request_id is None:
            raise RpcError(INVALID_REQUEST, "initialize needs an id", status=400)
        asked = params.get("protocolVersion")
        if not isinstance(asked, str):
            raise RpcError(INVALID_PARAMS, "initialize needs protocolVersion, a string")
        if self._sessions.kind.tools is None:
            raise RpcError(INTERNAL_ERROR, "This environment has no tools, so MCP cannot play it.")
        arguments = _reset_arguments(params, headers)
        session, observed = await self._start(arguments)
        result = {
            "protocolVersion": asked if asked in REVISIONS else REVISIONS[-1],
            "capabilities": {
                "tools": {"listChanged": False},
                "experimental": {RESET_CAPABILITY: {"schema": self._sessions.kind.reset_schema}},
            },
            "serverInfo": {
                "name": self._sessions.kind.name,
                "version": self._sessions.kind.version,
            },
            "_meta": {
                RESET_CAPABILITY: {
                    "observation": observed.observation,
                    "reward": observed.reward,
                    "done": observed.done,
                }
            },
        }
        instructions = instructions_of(observed.observation)
        if instructions:
            result["instructions"] = instructions
        named = ((SESSION_HEADER, session.id.encode()),)
        return _Answer(status=200, content=_success(request_id, result), headers=named)

    async def _start(self, arguments: Mapping[str, Any]) -> tuple[Session, Observed]:
        """A new session with an episode; a failure leaves no session behind."""
        sessions = self._sessions
        await sessions.slots.take(sessions.settings.queue_timeout_s)
        session = await sessions.open(Owner.REQUESTS)
        try:
            observed = await sessions.call(session, "reset", lambda world: world.reset(arguments))
        except BaseException:
            await sessions.end(session)
            raise
        return session, observed

    async def _result(self, session: Session, method: str, params: Mapping[str, Any]) -> Any:
        match method:
            case "ping":
                return {}
            case "tools/list":
                tools = await self._tools(session)
                return {"tools": [_listed(tool) for tool in tools]}
            case "tools/call":
                return await self._call(session, params)
        raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method[:80]}")

    async def _call(self, session: Session, params: Mapping[str, Any]) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments") or {}
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, "tools/call needs name, a string")
        if not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "arguments must be an object")
        if name not in {tool.name for tool in await self._tools(session)}:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {name[:80]}")
        answer = await self._sessions.call(
            session, f"tool {name}", lambda world: world.call_tool(name, arguments)
        )
        result: dict[str, Any] = {
            "content": standard_blocks(answer.content),
            "isError": answer.is_error,
        }
        if not answer.is_error:
            data = answer.data
            result["structuredContent"] = data if isinstance(data, dict) else {"result": data}
        return result

    async def _tools(self, session: Session) -> tuple[ToolDescription, ...]:
        """The tools of the session's world, which may differ from episode to episode."""
        listing = getattr(session.world, "list_tools", None)
        if listing is None:
            return self._sessions.kind.tools or ()
        return await self._sessions.call(session, "tools/list", lambda world: listing())

    async def _delete(self, headers: Mapping[bytes, str]) -> _Answer:
        try:
            session = self._session(headers)
        except RpcError as error:
            failed = _failure(None, error.code, str(error))
            return _Answer(status=error.status, content=failed)
        if session.connection is not None:
            session.is_closing = True  # ends when that socket detaches
        else:
            await self._sessions.end(session)
        return _Answer(status=204)

    def _session(self, headers: Mapping[bytes, str]) -> Session:
        session_id = headers.get(SESSION_HEADER)
        if session_id is None:
            raise RpcError(INVALID_REQUEST, "The header Mcp-Session-Id is missing", status=400)
        session = self._sessions.find(session_id)
        if session is None or session.owner is not Owner.REQUESTS:
            raise RpcError(INVALID_REQUEST, "This session does not exist (any more)", status=404)
        return session


def _message(message: Any) -> dict[str, Any]:
    if message is NOT_JSON:
        raise RpcError(PARSE_ERROR, "Parse error", status=400)
    is_message = (
        isinstance(message, dict)
        and message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method", ""), str)
        and isinstance(message.get("params", {}), dict)
        and isinstance(message.get("id", 0), str | int)
        and not isinstance(message.get("id"), bool)
        and bool({"method", "result", "error"} & set(message))
    )
    if not is_message:
        raise RpcError(INVALID_REQUEST, "Invalid Request: send one JSON-RPC message", status=400)
    return message


def _check_revision(headers: Mapping[bytes, str]) -> None:
    revision = headers.get(REVISION_HEADER)
    if revision is not None and revision not in REVISIONS:
        raise RpcError(
            INVALID_REQUEST,
            f"Unknown MCP-Protocol-Version {revision[:40]!r}. Known: {', '.join(REVISIONS)}",
            status=400,
        )


def _reset_arguments(params: Mapping[str, Any], headers: Mapping[bytes, str]) -> dict[str, Any]:
    """What the episode starts with, as the client or whoever configured it says."""
    capabilities = params.get("capabilities")
    experimental = capabilities.get("experimental") if isinstance(capabilities, dict) else None
    arguments = (experimental or {}).get(RESET_CAPABILITY) if _is_object(experimental) else None
    header = headers.get(RESET_HEADER)
    if arguments is None and header is not None:
        try:
            arguments = from_json(header.encode("latin-1"), allow_inf_nan=False)
        except ValueError:
            raise RpcError(INVALID_PARAMS, "The header Corral-Reset is not JSON") from None
    if arguments is not None and not _is_object(arguments):
        raise RpcError(INVALID_PARAMS, f"{RESET_CAPABILITY} must be an object")
    return arguments or {}


def _is_object(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _rpc_code(fault: ServeFault) -> tuple[int, str, Any]:
    if isinstance(fault, InvalidRequest):
        problems = [f"{'.'.join(map(str, e['loc'][1:]))}: {e['msg']}" for e in fault.errors]
        message = (
            f"The episode cannot start so: {'; '.join(problems)}. Give what reset takes in the "
            f"experimental capability {RESET_CAPABILITY} or, as JSON, in the header Corral-Reset."
        )
        return INVALID_PARAMS, message, {"errors": fault.errors}
    is_server = fault.code is not Code.EXECUTION_ERROR
    return SERVER_ERROR if is_server else INTERNAL_ERROR, fault.message, fault.details or None


def _listed(tool: ToolDescription) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description or "",
        "inputSchema": tool.input_schema,
        **({"_meta": tool.meta} if tool.meta else {}),
    }


def _success(request_id: Any, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def _failure(request_id: Any, code: int, message: str, data: Any = None) -> dict[str, Any]:
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": request_id, "error": error}
