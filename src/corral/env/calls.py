"""Run tool calls: arguments checked, errors told to the model, infrastructure told apart."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from corral.env.arguments import ArgumentError, shortened
from corral.env.content import content_of
from corral.env.threads import await_user_code, is_awaitable, run_in_thread
from corral.env.tools import Tool, discover_tools, refuse_clashes, tool_of
from corral.errors import INFRASTRUCTURE_ERRORS, InfrastructureFault, text_of

Result = TypeVar("Result")

_PLAIN = (str, int, float, bool)
"""Types of arguments that chat messages can hold as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a call answers: the content of the tool message."""

    content: str | list[Any]
    """Text, or a list of content blocks."""
    is_error: bool = False
    """Whether the call failed, and the content says why."""


class ToolSet:
    """The tools one kind of episode offers: plain functions first, then the environment's own."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        refuse_clashes(tools)
        self.tools = tuple(tools)
        self.names = tuple(tool.name for tool in tools)
        self.schemas = [tool.schema for tool in tools]
        """What chat templates show, in the same order."""
        self._by_name = {tool.name: tool for tool in tools}

    def __len__(self) -> int:
        return len(self.tools)

    def find(self, name: str) -> Tool | None:
        """The tool of that name, if there is one."""
        return self._by_name.get(name)

    def typed(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the tool will get them, so that a conversation shows what was called.

        Only numbers, truth values and text change (``"3"`` where an integer is wanted becomes 3);
        what does not fit stays as the model wrote it.
        """
        tool = self.find(name)
        try:
            checked = {} if tool is None else tool.arguments.check(arguments)
        except ArgumentError:
            return dict(arguments)
        return {
            key: checked[key] if type(checked.get(key)) in _PLAIN else value
            for key, value in arguments.items()
        }

    def bind(self, instance: object = None, *, executor: Executor | None = None) -> "BoundTools":
        """The tools ready to be called on one environment instance.

        Args:
            instance: None when all tools are plain functions.
            executor: Where the instance's synchronous methods run; the process's shared threads by
                default. Plain functions run in those always.
        """
        return BoundTools(self, instance, executor=executor)


class BoundTools:
    """The tools of one episode. Bind anew for each episode.

    Calls may be made at the same time. The environment's synchronous methods then run one after
    the other in the order of the calls, so that they need no locks; all else runs concurrently.
    """

    def __init__(
        self, tool_set: ToolSet, instance: object, *, executor: Executor | None = None
    ) -> None:
        self._tool_set = tool_set
        self._instance = instance
        self._executor = executor
        self._instance_lock = asyncio.Lock()
        self._in_thread_of_instance: asyncio.Future[Any] | None = None

    async def call(self, name: str, arguments: object) -> ToolResult:
        """Run one call and say what came of it; whatever the model wrote, it never raises.

        Raises:
            InfrastructureFault: What the tool stands on failed (a connection, a time-out): that
                says nothing about the model.
        """
        came = await attempt(self._tool_set, name, arguments, self._run)
        if isinstance(came, CallFailure):
            # The Python repr is what models of this trainer contract have always been shown.
            return ToolResult(content=repr({"error": came.message}), is_error=True)
        return ToolResult(content=came)

    async def _run(self, tool: Tool, arguments: Mapping[str, Any]) -> str | list[Any]:
        function = tool.function or getattr(self._instance, tool.function_name)
        if tool.is_async:
            return content_of(await await_user_code(function(**arguments)))

        def run() -> Any:
            value = function(**arguments)
            return value if is_awaitable(value) else content_of(value)

        value = await self._in_thread(tool, run)
        # A plain wrapper around an async function hands back what is yet to be awaited.
        return content_of(await await_user_code(value)) if is_awaitable(value) else value

    async def settled(self) -> None:
        """Wait until the environment's last synchronous call, interrupted or not, has ended."""
        if self._in_thread_of_instance is not None:
            await asyncio.wait([self._in_thread_of_instance])

    async def _in_thread(self, tool: Tool, run: Callable[[], Any]) -> Any:
        if tool.function is not None:
            return await run_in_thread(run)
        async with self._instance_lock:
            call = asyncio.ensure_future(run_in_thread(run, executor=self._executor))
            call.add_done_callback(_look_at)
            self._in_thread_of_instance = call
            # Shielded: who is interrupted here leaves a thread behind that goes on.
            return await asyncio.shield(call)


def _look_at(call: asyncio.Future[Any]) -> None:
    """Nobody may be left to hear how an interrupted call ended; that is not worth a complaint."""
    if not call.cancelled():
        call.exception()


def tools_of(
    standalone: Sequence[Callable[..., Any]] = (), environment_class: type | None = None
) -> ToolSet:
    """All tools of one kind of episode.

    Raises:
        ToolDefinitionError: A tool cannot be described, or two answer to the same name.
    """
    own = discover_tools(environment_class) if environment_class is not None else ()
    return ToolSet([*(tool_of(function) for function in standalone), *own])


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFailure:
    """Why a call gave nothing."""

    message: str
    kind: Literal["execution_error", "invalid_args", "tool_not_found"]


async def attempt(
    tools: ToolSet,
    name: str,
    arguments: object,
    run: Callable[[Tool, Mapping[str, Any]], Awaitable[Result]],
) -> Result | CallFailure:
    """Find a tool, check the arguments and ``run`` it; whose mistake it was is told, not raised.

    Raises:
        InfrastructureFault: What the tool stands on failed.
    """
    tool = tools.find(name)
    if tool is None:
        return CallFailure(message=f"Tool {shortened(name)} not found.", kind="tool_not_found")
    try:
        return await run(tool, tool.arguments.check(arguments))
    except ArgumentError as error:
        return CallFailure(message=str(error), kind="invalid_args")
    except InfrastructureFault:
        raise
    except INFRASTRUCTURE_ERRORS as error:
        what = f"{tool.source}: {type(error).__name__}: {text_of(error)}"
        raise InfrastructureFault(what) from error
    except Exception as error:  # noqa: BLE001 - inside a tool every exception is text
        return CallFailure(message=text_of(error) or type(error).__name__, kind="execution_error")
