"""An OpenEnv-style environment as a `World`: typed actions in, typed observations out."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from corral.env.threads import is_awaitable
from corral.serve.calling import accepted, checked_reward, close_in, named_parameters
from corral.serve.faults import (
    Code,
    InvalidRequest,
    ServeFault,
    execution_fault,
    factory_fault,
    problems_of,
)
from corral.serve.mcp_actions import described
from corral.serve.shared_threads import SessionThread, start_thread
from corral.serve.threads import EnvironmentThread
from corral.serve.world import Observed, ToolAnswer, ToolDescription

_IN_ENVELOPE = {"reward", "done"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenEnvKind:
    """One OpenEnv-style class with its action, observation and state models."""

    name: str
    description: str
    version: str
    factory: Callable[[], Any]
    cls: type
    validate_action: Callable[[Any], Any]
    """Makes the action object of a JSON object; raises pydantic's ValidationError."""
    action_schema: dict[str, Any]
    observation_schema: dict[str, Any]
    state_schema: dict[str, Any]
    reset_schema: dict[str, Any]
    tools: tuple[ToolDescription, ...] | None
    is_concurrent: bool
    is_replayable: bool
    is_one_thread: bool = False
    """Whether all instances share one thread."""
    has_own_threads: bool = True
    """Whether an instance must be called from the same thread always."""
    is_debug: bool = False
    _metadata: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    _shared: list[EnvironmentThread] = field(default_factory=list[EnvironmentThread], repr=False)

    async def construct(self) -> "OpenEnvWorld":
        """Make an environment in a thread of its own.

        Raises:
            ServeFault: The constructor raised.
        """
        thread = self._thread()
        try:
            environment = await thread.submit(self.factory)
        except BaseException as error:
            self._release(thread)
            if isinstance(error, Exception):
                raise factory_fault(self.name, error) from error
            raise
        world = OpenEnvWorld(self, environment, thread)
        await world.open_tools()
        return world

    async def call_once(self, method: str, *arguments: Any) -> Any:
        """Call a method of a new environment that lives for this call only."""
        thread = self._thread()

        def run() -> Any:
            environment = self.factory()
            try:
                return getattr(environment, method)(*arguments)
            finally:
                _closer(environment)()

        try:
            return await thread.submit(run)
        finally:
            self._release(thread)

    async def metadata(self) -> dict[str, Any]:
        """What the class says about itself, if it does; asked of one instance, once."""
        written = getattr(self.cls, "get_metadata", None)
        if written is None or is_from_openenv_base(written):
            return {}
        if not self._metadata:
            fields = to_jsonable_python(await self.call_once("get_metadata"))
            self._metadata.update(fields)
        return self._metadata

    def _thread(self) -> SessionThread:
        if not self.is_one_thread:
            return start_thread(self.name, is_own=self.has_own_threads)
        if not self._shared:
            self._shared.append(EnvironmentThread(name=self.name))
        return self._shared[0]

    def _release(self, thread: SessionThread) -> None:
        if not self.is_one_thread:
            thread.stop()


class OpenEnvWorld:
    """The environment of one session."""

    def __init__(self, kind: OpenEnvKind, environment: Any, thread: SessionThread) -> None:
        self._kind = kind
        self._environment = environment
        self._thread = thread
        self._is_done = False
        self._tools_closed: asyncio.Event | None = None
        cls = type(environment)
        self._reset = _override(environment, cls, "reset")
        self._step = _override(environment, cls, "step")
        self._takes_timeout = _takes(self._step, "timeout_s")

    async def reset(self, arguments: Mapping[str, Any]) -> Observed:
        """Start an episode with those of the arguments that ``reset`` takes."""
        known = accepted(self._reset, arguments)
        return await self._observe("reset", lambda: self._reset(**known))

    async def step(self, action: Any, *, timeout_s: float | None = None) -> Observed:
        """Validate the action and do it."""
        try:
            checked = self._kind.validate_action(action)
        except ValidationError as error:
            raise InvalidRequest(problems_of(error)) from None
        step = self._step
        if self._takes_timeout and timeout_s is not None:
            return await self._observe("step", lambda: step(checked, timeout_s=timeout_s))
        return await self._observe("step", lambda: step(checked))

    async def state(self) -> dict[str, Any]:
        """The state's fields, without those that are hidden until the episode is done."""

        def run() -> dict[str, Any]:
            state = self._environment.state
            return _as_object(state() if callable(state) else state, "state", set())

        try:
            fields = await self._thread.submit(run)
        except Exception as error:
            raise self._fault("state", error) from error
        if not self._is_done:
            for name in getattr(self._kind.cls, "HIDDEN_STATE", ()):
                fields.pop(name, None)
        return fields

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Call a tool of the environment's MCP server, without a step."""
        client = self._mcp_client()

        async def run() -> ToolAnswer:
            async with client:
                answer = await client.call_tool(name, dict(arguments))
            content = [to_jsonable_python(block, exclude_none=True) for block in answer.content]
            return ToolAnswer(
                content=cast("list[dict[str, Any]]", content),
                data=to_jsonable_python(answer.data, fallback=str),
                is_error=bool(answer.is_error),
            )

        try:
            return await self._thread.submit(run)
        except Exception as error:  # noqa: BLE001 - inside a tool every exception is text
            text = str(error)
            return ToolAnswer(
                content=[{"type": "text", "text": text}], data={"error": text}, is_error=True
            )

    async def list_tools(self) -> list[ToolDescription]:
        """The tools this very environment has now."""
        client = self._mcp_client()

        async def run() -> list[ToolDescription]:
            async with client:
                return [described(tool) for tool in await client.list_tools()]

        try:
            return await self._thread.submit(run)
        except Exception as error:
            raise self._fault("list_tools", error) from error

    async def open_tools(self) -> None:
        """Hold the environment's MCP session open, so that not every call connects anew."""
        session = getattr(self._environment, "mcp_session", None)
        if not callable(session):
            return
        opened = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()

        def tell(error: BaseException | None) -> None:
            if not opened.done():
                opened.set_exception(error) if error else opened.set_result(None)

        async def hold() -> None:
            self._tools_closed = asyncio.Event()
            try:
                async with cast("Any", session)():
                    loop.call_soon_threadsafe(tell, None)
                    await self._tools_closed.wait()
            except Exception as error:  # noqa: BLE001 - told to whoever opens
                loop.call_soon_threadsafe(tell, error)

        held = self._thread.submit(hold)
        held.add_done_callback(lambda future: future.cancelled() or future.exception())
        try:
            await opened
        except Exception as error:
            raise factory_fault(self._kind.name, error) from error

    async def close(self) -> None:
        """Close the environment in its thread, and end the thread."""

        def run() -> Any:
            if self._tools_closed is not None:
                self._tools_closed.set()
            return _closer(self._environment)()

        try:
            if self._kind.is_one_thread:
                await self._thread.submit(run)
            else:
                await close_in(self._thread, run)
        except Exception as error:  # noqa: BLE001 - logged; there is nobody to tell
            self._fault("close", error)

    def abandon(self) -> None:
        """Cancel the coroutine under way, if it is one."""
        self._thread.cancel_tasks()

    def _mcp_client(self) -> Any:
        client = getattr(self._environment, "mcp_client", None)
        if client is None:
            raise ServeFault(Code.EXECUTION_ERROR, "Environment does not support MCP")
        return client

    async def _observe(self, what: str, call: Callable[[], Any]) -> Observed:
        def run() -> Any:
            value = call()
            return _later(value, what) if is_awaitable(value) else _observed(value, what)

        try:
            observed = await self._thread.submit(run)
        except Exception as error:
            raise self._fault(what, error) from error
        self._is_done = observed.done
        return observed

    def _fault(self, what: str, error: Exception) -> ServeFault:
        return execution_fault(f"{self._kind.name}.{what}", error, is_debug=self._kind.is_debug)


async def _later(value: Any, what: str) -> Observed:
    return _observed(await value, what)


def _observed(value: Any, what: str) -> Observed:
    fields = _as_object(value, what, _IN_ENVELOPE)
    metadata = fields.get("metadata")
    return Observed(
        observation=fields,
        reward=checked_reward(getattr(value, "reward", None), what),
        done=bool(getattr(value, "done", False)),
        metadata=metadata if isinstance(metadata, Mapping) else {},
    )


def _as_object(value: Any, what: str, exclude: set[str]) -> dict[str, Any]:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude=exclude)
    if isinstance(value, Mapping):
        plain = to_jsonable_python(value)
        return {name: part for name, part in plain.items() if name not in exclude}
    raise TypeError(f"{what} gave a {type(value).__name__}, which is no model and no mapping")


def _override(environment: Any, cls: type, name: str) -> Callable[..., Any]:
    """``step_async`` where the author wrote one, else ``step``."""
    written = getattr(cls, f"{name}_async", None)
    if written is not None and not is_from_openenv_base(written):
        return getattr(environment, f"{name}_async")
    return getattr(environment, name)


def is_from_openenv_base(function: Any) -> bool:
    # The base class's own coroutines only call the synchronous methods.
    return getattr(function, "__qualname__", "").startswith("Environment.") and getattr(
        function, "__module__", ""
    ).endswith(".interfaces")


def _takes(function: Callable[..., Any], name: str) -> bool:
    names = named_parameters(function)
    return names is None or name in names


def _closer(environment: Any) -> Callable[[], Any]:
    close = getattr(environment, "close", None)
    return close if callable(close) else lambda: None
