"""A session with an MCP server, held open on the event loop of the process's clients."""

import asyncio
import os
import shlex
import tempfile
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.metadata import version
from typing import IO, Any, TextIO, cast

from corral.env.io_thread import io_thread
from corral.errors import InfrastructureFault, UsageError

_TIMED_OUT = 408
"""The code with which the client gives up waiting for an answer."""
_TAIL_LINES = 8
_TAIL_BYTES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where a server is: a program that speaks over its standard streams, or a URL."""

    command: tuple[str, ...] = ()
    """Program and arguments. It is found on ``PATH``."""
    url: str | None = None
    """Of a server that speaks streamable HTTP."""
    env_vars: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables of the program beside ``PATH``, ``HOME`` and the like; others it does not see."""
    folder: str | None = None
    """Where the program runs; by default where this process does."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of every HTTP request, such as ``Authorization``."""
    start_timeout_s: float = 60.0
    call_timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise UsageError(
                f"command={self.command!r}, url={self.url!r}: an MCP server is one of them. Write "
                "mcp:COMMAND or mcp:URL."
            )

    def __str__(self) -> str:
        return self.url or shlex.join(self.command)


class Connection:
    """One session, from `open` to `close`. All of it runs on the clients' event loop.

    The session lives in a task of its own, since it must be left in the task that entered it.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._session: Any = None
        self._log: IO[bytes] | None = None
        self._last_words = ""
        self.instructions: str | None = None
        """What the server says about its use."""

    @property
    def is_open(self) -> bool:
        """Whether calls can be made; not so once the server has ended."""
        return self._task is not None and not (self._task.done() or self._closing.is_set())

    async def open(self) -> None:
        """Start the server, or connect to it.

        Raises:
            UsageError: There is no such program.
            InfrastructureFault: It did not answer as an MCP server.
        """
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(ready))
        io_thread().close_at_exit(self)
        await ready

    async def tools(self) -> list[Any]:
        """All tools, of all pages of the list."""
        found: list[Any] = []
        cursor: str | None = None
        while True:
            page = await self._ask(self._session.list_tools(cursor))
            found += page.tools
            cursor = page.nextCursor
            if not cursor:
                return found

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """What a tool answers: ``mcp.types.CallToolResult``.

        Raises:
            ValueError: The server refuses the call; the text is for the model.
            InfrastructureFault: It has ended, or does not answer in time.
        """
        limit = timedelta(seconds=self._server.call_timeout_s)
        return await self._ask(self._session.call_tool(name, arguments, limit))

    async def close(self) -> None:
        """End the session, and the program."""
        self._closing.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _hold(self, ready: asyncio.Future[None]) -> None:
        with tempfile.TemporaryFile() as self._log:
            try:
                async with AsyncExitStack() as stack:
                    async with asyncio.timeout(self._server.start_timeout_s):
                        opened = _session(self._server, self._log)
                        self._session = await stack.enter_async_context(opened)
                        told = await self._session.initialize()
                    self.instructions = told.instructions
                    ready.set_result(None)
                    await self._closing.wait()
            except FileNotFoundError:
                ready.set_exception(UsageError(f"There is no program {self._server.command[0]!r}."))
            except Exception as error:  # noqa: BLE001 - told to who waits; later it is merely the end
                if not ready.done():
                    why = _leaf(error)
                    ready.set_exception(self._fault(f"{type(why).__name__}: {why}"))
            finally:
                self._last_words = _last_lines(self._log)

    def _fault(self, what: str) -> InfrastructureFault:
        """What failed, and the last that the program wrote about it."""
        log = self._log
        wrote = self._last_words if log is None or log.closed else _last_lines(log)
        told = f"{self._server}: {what}"
        return InfrastructureFault(f"{told}. It wrote:\n{wrote}" if wrote else told)

    async def _ask(self, question: Coroutine[Any, Any, Any]) -> Any:
        from anyio import BrokenResourceError, ClosedResourceError
        from mcp import McpError
        from mcp.types import CONNECTION_CLOSED

        if self._task is None or not self.is_open:
            question.close()
            raise self._fault("it ended")
        asking = asyncio.ensure_future(question)
        try:
            await asyncio.wait([asking, self._task], return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise self._fault("it ended")
            return asking.result()
        except McpError as error:
            if error.error.code not in (CONNECTION_CLOSED, _TIMED_OUT):
                raise ValueError(str(error)) from error
            self._closing.set()  # who hangs once would hang again
            raise self._fault(str(error)) from error
        except (BrokenResourceError, ClosedResourceError) as error:
            self._closing.set()
            raise self._fault("it ended") from error
        finally:
            asking.cancel()


@asynccontextmanager
async def _session(server: Server, log: IO[bytes]) -> AsyncIterator[Any]:
    if not version("mcp").startswith("1."):
        raise UsageError(f"mcp {version('mcp')} is installed; this needs one of 1.x.")
    import httpx
    from mcp import ClientSession, StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    async with AsyncExitStack() as stack:
        if server.url is None:
            program, *arguments = server.command
            parameters = StdioServerParameters(
                command=program,
                args=arguments,
                env=dict(server.env_vars) or None,
                cwd=server.folder,
            )
            streams = await stack.enter_async_context(stdio_client(parameters, cast("TextIO", log)))
        else:
            limits = httpx.Timeout(server.call_timeout_s)
            client = httpx.AsyncClient(headers=dict(server.headers), timeout=limits)
            await stack.enter_async_context(client)
            opened = streamable_http_client(server.url, http_client=client)
            streams = (await stack.enter_async_context(opened))[:2]
        yield await stack.enter_async_context(ClientSession(*streams))


def _last_lines(log: IO[bytes]) -> str:
    """The end of what a program wrote on standard error."""
    size = os.fstat(log.fileno()).st_size
    # Not by seeking: the program writes at the same offset.
    text = os.pread(log.fileno(), _TAIL_BYTES, max(0, size - _TAIL_BYTES)).decode(errors="replace")
    return "\n".join(text.strip().splitlines()[-_TAIL_LINES:])


def _leaf(error: BaseException) -> BaseException:
    """The first error in groups of them, which task groups make of any."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
