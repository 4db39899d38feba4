"""OpenEnv's dialect of MCP: JSON-RPC objects over POST, over a socket, and inside ``/ws``."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import from_json

from corral.serve.faults import Code, ServeFault
from corral.serve.session import Owner, Session
from corral.serve.sessions import Sessions
from corral.serve.world import ToolAnswer, ToolDescription, World

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_ERROR = -32000

_KEYS = frozenset({"jsonrpc", "method", "params", "id"})
NOT_JSON: Final = object()
"""What `parsed` gives for a body that is no JSON; null is JSON."""


class RpcError(Exception):
    """A JSON-RPC error; ``status`` is that of HTTP where a protocol wants another than 200."""

    def __init__(self, code: int, message: str, *, data: Any = None, status: int = 200) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
        self.status = status


def parsed(body: bytes) -> Any:
    """The JSON of a body, or `NOT_JSON`."""
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError:
        return NOT_JSON


class McpDialect:
    """Answers JSON-RPC requests for the tools of a server's sessions."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def answer_post(self, payload: Any) -> dict[str, Any]:
        """Answer the body of a POST, as `parsed` read it; a batch is no request."""
        if payload is NOT_JSON or isinstance(payload, list):
            return failure(None, PARSE_ERROR, "Parse error")
        return await self.answer(payload)

    async def answer(self, payload: Any, *, session: Session | None = None) -> dict[str, Any]:
        """Answer one request.

        Args:
            session: The session of the socket it came from, if it came from one.
        """
        if not _is_request(payload):
            return failure(None, INVALID_REQUEST, "Invalid Request")
        request_id = payload.get("id")
        params: Mapping[str, Any] = payload.get("params") or {}
        try:
            result = await self._result(payload["method"], params, session)
        except RpcError as error:
            return failure(request_id, error.code, str(error), error.data)
        except ServeFault as fault:
            return failure(request_id, *_rpc_code(fault))
        return {"jsonrpc": "2.0", "id": request_id, "result": result}

    async def _result(
        self, method: str, params: Mapping[str, Any], session: Session | None
    ) -> dict[str, Any]:
        match method:
            case "tools/list":
                tools = await self._with_world(params, session, "tools/list", _list_tools)
                return {"tools": [_listed(tool) for tool in tools]}
            case "tools/call":
                return await self._call(params, session)
            case "openenv/session/create":
                return {"session_id": session.id if session else await self._create()}
            case "openenv/session/close":
                return await self._close(params, session)
        raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}")

    async def _call(self, params: Mapping[str, Any], session: Session | None) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or not name:
            raise RpcError(INVALID_PARAMS, "Missing 'name' in params")
        if not isinstance(arguments or {}, Mapping):
            raise RpcError(INVALID_PARAMS, "'arguments' must be an object")
        self._require_tools()
        answer: ToolAnswer = await self._with_world(
            params, session, f"tool {name}", lambda world: world.call_tool(name, arguments or {})
        )
        if answer.is_error:
            if name not in {tool.name for tool in self._sessions.kind.tools or ()}:
                raise RpcError(INTERNAL_ERROR, f"Unknown tool: '{name}'")
            text = " ".join(str(block.get("text", "")) for block in answer.content)
            raise RpcError(INTERNAL_ERROR, f"Error calling tool '{name}': {text}")
        return {
            "content": answer.content,
            "structured_content": {"result": answer.data},
            "meta": None,
            "data": answer.data,
            "is_error": False,
        }

    async def _with_world(
        self, params: Mapping[str, Any], session: Session | None, what: str, function: Any
    ) -> Any:
        """Call the session named, that of the socket, or an environment for this call alone."""
        session_id = params.get("session_id")
        if session is None and session_id is not None:
            session = self._session(session_id)
        if session is not None:
            return await self._sessions.call(session, what, function)
        self._require_tools()
        if what == "tools/list":
            return self._sessions.kind.tools
        return await self._sessions.once(what, function)

    def _require_tools(self) -> None:
        if self._sessions.kind.tools is None:
            raise RpcError(INTERNAL_ERROR, "Environment does not support MCP")

    async def _create(self) -> str:
        await self._sessions.slots.take(self._sessions.settings.queue_timeout_s)
        return (await self._sessions.open(Owner.REQUESTS)).id

    async def _close(self, params: Mapping[str, Any], session: Session | None) -> dict[str, Any]:
        session_id = params.get("session_id")
        if not session_id:
            raise RpcError(INVALID_PARAMS, "Invalid params - 'session_id' is required")
        if session is not None and session.id == session_id:
            raise RpcError(
                INVALID_REQUEST, "Cannot close active WebSocket-managed session via MCP method"
            )
        found = self._session(session_id)
        if found.connection is not None:
            found.is_closing = True
            return {"session_id": session_id, "closed": False, "closing": True}
        await self._sessions.end(found)
        return {"session_id": session_id, "closed": True}

    def _session(self, session_id: Any) -> Session:
        found = self._sessions.find(session_id) if isinstance(session_id, str) else None
        # What a socket opened is nobody else's, whoever learned its name.
        if found is None or found.owner is not Owner.REQUESTS:
            raise RpcError(INVALID_PARAMS, f"Unknown session_id: {str(session_id)[:80]}")
        return found


def failure(request_id: Any, code: int, message: str, data: Any = None) -> dict[str, Any]:
    """A JSON-RPC error; ``data`` is always there."""
    return {
        "jsonrpc": "2.0",
        "id": request_id,
        "error": {"code": code, "message": message, "data": data},
    }


async def _list_tools(world: World) -> Any:
    listing = getattr(world, "list_tools", None)
    if listing is None:
        raise RpcError(INTERNAL_ERROR, "Environment does not support MCP")
    return await listing()


def _listed(tool: ToolDescription) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": None,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": None,
        "icons": None,
        "annotations": None,
        "meta": tool.meta,
        "execution": None,
    }


def _is_request(payload: Any) -> bool:
    return (
        isinstance(payload, dict)
        and payload.get("jsonrpc") == "2.0"
        and isinstance(payload.get("method"), str)
        and isinstance(payload.get("params", {}), dict)
        and isinstance(payload.get("id"), str | int | None)
        and _KEYS.issuperset(payload)
    )


def _rpc_code(fault: ServeFault) -> tuple[int, str, Any]:
    if fault.code in (Code.CAPACITY_REACHED, Code.FACTORY_ERROR, Code.STEP_TIMEOUT):
        return SERVER_ERROR, fault.message, fault.details
    return INTERNAL_ERROR, fault.message, fault.details or None
