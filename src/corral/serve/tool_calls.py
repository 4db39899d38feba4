"""One call of a tool inside the environment's thread, told apart: answer, wrong call, or fault."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from corral.env.calls import CallFailure, ToolSet, attempt
from corral.env.content import are_content_blocks, content_of, for_json, with_blocks
from corral.env.threads import awaited, is_awaitable, run_without_loop
from corral.env.tools import Tool

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """What came of a tool call."""

    content: str | list[Any]
    """What the model is shown; of a failed call, why it failed."""
    value: Any = None
    """What the tool returned."""
    error_type: Literal["execution_error", "invalid_args", "tool_not_found"] | None = None


class InstanceCalls:
    """Calls the members of one environment instance, whether they are asynchronous or not.

    All of it happens in the environment's thread.
    """

    def __init__(self, tools: ToolSet, instance: Any, *, is_async: bool) -> None:
        self._tools = tools
        self.instance = instance
        self._is_async = is_async

    def job(self, make: Callable[[], Coroutine[Any, Any, Result]]) -> Callable[[], Any]:
        """A coroutine of this class as a job for the thread: synchronous code needs no loop."""
        return make if self._is_async else lambda: run_without_loop(make())

    async def call(self, name: str, arguments: Mapping[str, Any]) -> CallOutcome:
        """Call a tool; whatever the caller wrote, it is an outcome.

        Raises:
            InfrastructureFault: What the tool stands on failed.
        """
        came = await attempt(self._tools, name, arguments, self._run)
        if isinstance(came, CallFailure):
            return CallOutcome(content=came.message, error_type=came.kind)
        return came

    async def _run(self, tool: Tool, arguments: Mapping[str, Any]) -> CallOutcome:
        function = tool.function or getattr(self.instance, tool.function_name)
        value = with_blocks(await self.settle(function(**arguments)))
        value = for_json(value) if are_content_blocks(value) else value
        return CallOutcome(content=content_of(value), value=value)

    async def settle(self, value: Any) -> Any:
        """What a member returned, awaited if it has to be."""
        if not is_awaitable(value):
            return value
        if self._is_async:
            return await value
        # A plain wrapper around an async function in a class without any other.
        return asyncio.run(awaited(value))
