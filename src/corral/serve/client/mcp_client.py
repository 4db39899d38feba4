"""A client of worlds whose actions are MCP tools: list them, call them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from corral.errors import UsageError
from corral.serve.client.env_client import EnvClient, StepResult
from corral.serve.client.errors import ProtocolError, RemoteError, ToolCallError
from corral.serve.client.remote_tools import tools_from

T = TypeVar("T")

_NO_SUCH_METHOD = -32601


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool of a world."""

    name: str
    description: str
    """Empty where the server has none."""
    input_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ListToolsAction:
    """A step that asks for the tools."""

    def payload(self) -> dict[str, Any]:
        """What the step carries."""
        return {"type": "list_tools"}


@dataclass(frozen=True, slots=True)
class CallToolAction:
    """A step that calls a tool; unlike ``call_tool`` it counts, and may have a reward."""

    tool_name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def payload(self) -> dict[str, Any]:
        """What the step carries."""
        return {
            "type": "call_tool",
            "tool_name": self.tool_name,
            "arguments": dict(self.arguments),
        }


class MCPToolClient(EnvClient[Any, dict[str, Any], dict[str, Any]]):
    """A client that also lists and calls tools outside ``step``.

    ::

        async with MCPToolClient("http://127.0.0.1:8000") as env:
            await env.reset()
            print([tool.name for tool in await env.list_tools()])
            print(await env.call_tool("echo_message", message="hi"))

    Tool calls travel in the session's own connection, so that they reach the same environment as
    ``reset`` and ``step``, and no session is left behind at the server when this client is gone.
    """

    def __init__(self, base_url: str | None = None, *args: Any, **options: Any) -> None:
        """
        Args:
            base_url: Where the server is.
            args: The other parameters of `EnvClient`.
            options: The other parameters of `EnvClient`; ``mode`` can only be ``production``.
        """
        if options.setdefault("mode", "production") != "production":
            raise UsageError(f"mode={options['mode']!r}: tools are served in production mode.")
        super().__init__(base_url, *args, **options)
        self._numbers = count(1)
        self._tools: list[Tool] | None = None

    def list_tools(self, use_cache: bool = True) -> Awaitable[list[Tool]]:
        """The tools of the world.

        Raises:
            ProtocolError: The answer is no list of tools.
            RemoteError: The world has none, or listing them failed.
        """

        def parse(answer: Any) -> list[Tool]:
            self._result(answer)
            self._tools = [_tool(listed) for listed in tools_from(answer)]
            return list(self._tools)

        if use_cache and self._tools is not None:
            known = list(self._tools)
            return self._do(_nothing, lambda _: known)
        return self._rpc("tools/list", {}, parse)

    def call_tool(self, name: str, /, **arguments: Any) -> Awaitable[Any]:
        """Call a tool and return its result.

        Raises:
            ToolCallError: There is no such tool, or it raised; the message is the server's.
        """

        def parse(answer: Any) -> Any:
            try:
                result = self._result(answer)
            except RemoteError as error:
                raise ToolCallError(error.message) from error
            if not isinstance(result, Mapping):
                return result
            if result.get("is_error") or result.get("isError"):
                raise ToolCallError(_texts(result) or f"Tool {name} failed.")
            return result["data"] if result.get("data") is not None else _plain(result)

        return self._rpc("tools/call", {"name": name, "arguments": arguments}, parse)

    def get_tool(self, name: str) -> Awaitable[Tool | None]:
        """The tool of that name, if there is one."""
        return self._among_tools(lambda tools: next((t for t in tools if t.name == name), None))

    def has_tool(self, name: str) -> Awaitable[bool]:
        """Whether there is a tool of that name."""
        return self._among_tools(lambda tools: any(tool.name == name for tool in tools))

    def _step_payload(self, action: Any) -> dict[str, Any]:
        if isinstance(action, ListToolsAction | CallToolAction):
            return action.payload()
        return super()._step_payload(action)

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[dict[str, Any]]:
        result = super()._parse_result(payload)
        listed: Any = result.observation.get("tools")
        if isinstance(listed, list):
            tools = [_tool(tool) for tool in listed]
            return StepResult(
                {**result.observation, "tools": tools}, result.reward, result.done, result.metadata
            )
        return result

    def _among_tools(self, answer: Callable[[list[Tool]], T]) -> Awaitable[T]:
        if self._tools is not None:
            known = self._tools
            return self._do(_nothing, lambda _: answer(known))

        def parse(listing: Any) -> T:
            self._result(listing)
            self._tools = [_tool(listed) for listed in tools_from(listing)]
            return answer(self._tools)

        return self._rpc("tools/list", {}, parse)

    def _rpc(
        self, method: str, params: Mapping[str, Any], parse: Callable[[Any], T]
    ) -> Awaitable[T]:
        number = next(self._numbers)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params)}

        def checked(answer: Any) -> T:
            if isinstance(answer, Mapping) and answer.get("id") not in (None, number):
                raise ProtocolError(f"{method}: the answer belongs to another request.")
            return parse(answer)

        return self._ask("mcp", request, checked)

    def _result(self, answer: Any) -> Any:
        if not isinstance(answer, Mapping):
            raise ProtocolError("The server's answer is no JSON-RPC object.")
        error = answer.get("error")
        if isinstance(error, Mapping):
            details: Any = error.get("data")
            raise RemoteError(
                str(error.get("message")),
                code=str(error.get("code")),
                details=details if isinstance(details, Mapping) else {},
            )
        return answer.get("result")


def _tool(listed: Mapping[str, Any]) -> Tool:
    return Tool(
        name=str(listed.get("name")),
        description=str(listed.get("description") or ""),
        input_schema=listed.get("inputSchema") or listed.get("input_schema") or {},
    )


def _texts(result: Mapping[str, Any]) -> str:
    content: Any = result.get("content")
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(block["text"]) for block in blocks if "text" in block)


def _plain(result: Mapping[str, Any]) -> Any:
    """The value of a result without ``data``."""
    structured = result.get("structured_content") or result.get("structuredContent")
    if isinstance(structured, Mapping) and set(structured) == {"result"}:
        return structured["result"]
    return structured if structured is not None else (_texts(result) or dict(result))


async def _nothing() -> None:
    return None
