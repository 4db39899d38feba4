"""The thread in which one session's environment lives, from construction to ``close``.

Some environments are bound to a thread (browsers, SQLite, OpenGL), and nobody can tell from
outside; a blocking one must hold up nobody else. So each has its own. Asynchronous code runs on an
event loop of that same thread, started when it is first needed: a coroutine that blocks then
blocks its own session only. A sleeping thread costs some 50 KB.
"""

import asyncio
import itertools
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final
from weakref import WeakKeyDictionary

from corral.env.threads import is_awaitable, plain_exception

Job = tuple[Callable[[], Any], "asyncio.Future[Any]"]
_STOP: Final = object()
_numbers = itertools.count(1)
_RESULTS: "WeakKeyDictionary[asyncio.AbstractEventLoop, Results]" = WeakKeyDictionary()
_STARTS: "WeakKeyDictionary[asyncio.AbstractEventLoop, Starts]" = WeakKeyDictionary()


class Results:
    """Carries results from all environment threads to one event loop, many in one wake-up."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._is_scheduled = False

    def put(
        self, future: "asyncio.Future[Any]", value: Any, error: BaseException | None = None
    ) -> None:
        """Hand over the outcome of a job; called from any thread."""
        self._waiting.append((future, value, error))
        if not self._is_scheduled:
            self._is_scheduled = True
            try:
                future.get_loop().call_soon_threadsafe(self._deliver)
            except RuntimeError:  # the server's loop is closed: nobody waits any more
                self._waiting.clear()

    def _deliver(self) -> None:
        # Cleared first: a result that comes during the loop is taken by it or wakes it again.
        self._is_scheduled = False
        while self._waiting:
            future, value, error = self._waiting.popleft()
            if future.done():  # whoever waited gave up
                continue
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(value)


def results_of(loop: asyncio.AbstractEventLoop) -> Results:
    """What carries results to that event loop."""
    return _RESULTS.setdefault(loop, Results())


class Starts:
    """Wakes the threads that got calls, all of them when the event loop has done its round.

    A thread that wakes earlier only fights the event loop for the interpreter.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[EnvironmentThread, Any]] = []

    def put(self, thread: "EnvironmentThread", job: Any) -> None:
        """Hand a call over; called on the event loop."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._start)
        self._waiting.append((thread, job))

    def _start(self) -> None:
        waiting, self._waiting = self._waiting, []
        for thread, job in waiting:
            thread.take(job)


class EnvironmentThread:
    """Runs the calls of one session, one after the other, in a thread of their own."""

    def __init__(self, *, name: str) -> None:
        loop = asyncio.get_running_loop()
        self._results = results_of(loop)
        self._starts = _STARTS.setdefault(loop, Starts())
        self._jobs: SimpleQueue[Any] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(
            target=self._work, name=f"corral-{name}-{next(_numbers)}", daemon=True
        )
        self._thread.start()

    def submit(self, function: Callable[[], Any]) -> "asyncio.Future[Any]":
        """Queue a call; the future of the calling loop gets what it returns or raises.

        If it returns an awaitable, that is awaited in the thread first.
        """
        future = asyncio.get_running_loop().create_future()
        self._put((function, future))
        return future

    def stop(self) -> None:
        """Let the thread end after the calls that are queued. Called once."""
        self._put(_STOP)

    def cancel_tasks(self) -> None:
        """Cancel the coroutines under way; a blocking call cannot be cancelled."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._tasks])

    def _put(self, job: Any) -> None:
        self._starts.put(self, job)

    def take(self, job: Any) -> None:
        """Wake the thread for a call."""
        self._jobs.put(job)
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._drain)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is _STOP:
                return
            awaitable = self._call(job)
            if awaitable is not None:
                break
            del job  # an idle thread holds on to nothing
        self._work_on_loop(awaitable, job[1])

    def _work_on_loop(self, first: Any, future: "asyncio.Future[Any]") -> None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            loop.call_soon(self._start, first, future)
            loop.call_soon(self._drain)
            self._loop = loop
            loop.run_forever()
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(asyncio.sleep(0))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            loop.close()

    def _drain(self) -> None:
        while not self._jobs.empty():
            job = self._jobs.get()
            if job is _STOP:
                asyncio.get_running_loop().stop()
                return
            awaitable = self._call(job)
            if awaitable is not None:
                self._start(awaitable, job[1])

    def _start(self, awaitable: Any, future: "asyncio.Future[Any]") -> None:
        task = asyncio.get_running_loop().create_task(self._await(awaitable, future))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _await(self, awaitable: Any, future: "asyncio.Future[Any]") -> None:
        try:
            self._results.put(future, await awaitable)
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            self._results.put(future, None, plain_exception(error))

    def _call(self, job: Job) -> Any:
        """Run one call; what it returned if that is still to be awaited."""
        function, future = job
        try:
            value = function()
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            self._results.put(future, None, plain_exception(error))
            return None
        if is_awaitable(value):
            return value
        self._results.put(future, value)
        return None
