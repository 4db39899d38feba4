"""The one event loop, in one thread of its own, on which all clients of a process talk.

A client is then tied to no event loop of its user: it works the same from synchronous code, from
any thread, inside a running loop, and from one ``asyncio.run`` to the next.
"""

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from functools import cache
from typing import Any, TypeVar
from weakref import WeakSet

from corral.errors import UsageError

T = TypeVar("T")

_GOODBYE_S = 3.0
"""How long the process waits at its end for servers to free what it held."""


class IoThread:
    """An event loop that runs as long as the process, in a thread that never keeps it alive."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="corral-client", daemon=True)
        self._thread.start()
        self._closers: WeakSet[Any] = WeakSet()
        atexit.register(self._say_goodbye)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and block until it is done."""
        if threading.current_thread() is self._thread:
            work.close()
            raise UsageError("A blocking call in the thread that would have to do the work.")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # such as Ctrl-C; done futures do not mind
            raise

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and await it; cancelling the wait cancels the work."""
        if threading.current_thread() is self._thread:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def start(self, work: Callable[[], Awaitable[Any]]) -> None:
        """Have something done there some time soon; its failure interests nobody."""

        async def quietly() -> None:
            with contextlib.suppress(Exception):
                await work()

        with contextlib.suppress(RuntimeError):  # the interpreter is on its way out
            self.loop.call_soon_threadsafe(lambda: _keep(self.loop.create_task(quietly())))

    def close_at_exit(self, session: Any) -> None:
        """Have ``session.close()`` awaited when the process ends, if it still exists."""
        self._closers.add(session)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def _say_goodbye(self) -> None:
        sessions = list(self._closers)
        if not sessions or not self._thread.is_alive():
            return

        async def close_all() -> None:
            await asyncio.wait(
                [asyncio.ensure_future(session.close()) for session in sessions],
                timeout=_GOODBYE_S,
            )

        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(close_all(), self.loop).result(_GOODBYE_S + 1)


def io_thread() -> IoThread:
    """The process's own; a forked child makes another one."""
    with _lock:
        return _thread_of(os.getpid())


@cache
def _thread_of(process_id: int) -> IoThread:
    return IoThread()


_lock = threading.Lock()
_kept: set[Any] = set()


def _keep(task: "asyncio.Task[Any]") -> None:
    _kept.add(task)
    task.add_done_callback(_kept.discard)
