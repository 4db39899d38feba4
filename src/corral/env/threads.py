"""Synchronous user code runs in threads, so that one slow tool never holds up other episodes."""

import asyncio
import contextvars
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Executor, Future
from functools import cache, partial
from queue import SimpleQueue
from types import GeneratorType, MappingProxyType
from typing import Any, ParamSpec, TypeVar, cast

from corral.errors import text_of

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

MAX_THREADS = 512
"""Most of them sleep in a socket or a subprocess; a thread is started only when all are busy."""


class DaemonThreads(Executor):
    """A bounded pool whose threads never keep the process alive.

    The pool of the standard library joins its threads at exit: a tool that hangs would hang the
    whole run after its last step.
    """

    def __init__(self, max_threads: int) -> None:
        self._max_threads = max_threads
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._started = 0
        self._unfinished = 0

    @property
    def is_busy(self) -> bool:
        """Whether a call runs or waits; one whose outcome is there does neither."""
        return self._unfinished > 0

    def submit(
        self,
        fn: Callable[Arguments, Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Future[Result]:
        """Queue a call, and start a thread for it if all are busy and there may be one more."""
        future: Future[Result] = Future()
        with self._lock:
            self._unfinished += 1
        self._jobs.put((future, partial(fn, *args, **kwargs)))
        with self._lock:
            if not self._idle.acquire(blocking=False) and self._started < self._max_threads:
                name = f"corral-environment-{self._started}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
                self._started += 1
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:
        """Let the threads end after what is queued; nobody waits for them."""
        with self._lock:
            self._max_threads = 0
            for _ in range(self._started):
                self._jobs.put(None)

    def _work(self) -> None:
        while (taken := self._jobs.get()) is not None:
            future, job = taken
            if future.set_running_or_notify_cancel():
                try:
                    value = job()
                except BaseException as error:  # noqa: BLE001 - whoever waits gets it
                    self._finish()
                    future.set_exception(error)
                else:
                    self._finish()
                    future.set_result(value)
                    del value
            else:
                self._finish()
            del taken, future, job  # an idle thread holds on to nothing
            self._idle.release()

    def _finish(self) -> None:
        with self._lock:
            self._unfinished -= 1


def environment_threads() -> DaemonThreads:
    """The pool all environments of the process share, made on first use."""
    return _pool_of(os.getpid())  # a forked child has none of its parent's threads


@cache
def _pool_of(process_id: int) -> DaemonThreads:
    return DaemonThreads(MAX_THREADS)


async def run_in_thread(
    function: Callable[[], Result], *, executor: Executor | None = None
) -> Result:
    """Run ``function`` in a thread of ``executor`` (the shared pool by default) and wait for it.

    The caller's context variables are visible to it. Cancelling the wait does not stop the thread.
    """
    context = contextvars.copy_context()

    def run() -> Result:
        return context.run(_as_plain_exception, function)

    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(executor or environment_threads(), run)


async def run_user_code(
    function: Callable[..., Any],
    arguments: Mapping[str, Any] = MappingProxyType({}),
    *,
    executor: Executor | None = None,
) -> Any:
    """Call a user's function: on the event loop if it is async, else in a thread."""
    if inspect.iscoroutinefunction(function):
        return await await_user_code(function(**arguments))
    value = await run_in_thread(partial(function, **arguments), executor=executor)
    # A plain wrapper around an async function hands back what is yet to be awaited.
    return await await_user_code(value) if is_awaitable(value) else value


async def await_user_code(awaitable: Awaitable[Result]) -> Result:
    """Await what a user's asynchronous function returned.

    A cancellation that nobody asked for is an error of its own (a request it gave up, a task of its
    that was cancelled); let through, it would pass for the cancellation of the whole run. So would
    SystemExit, which an event loop lets through to whoever runs it.
    """
    try:
        return await awaitable
    except BaseException as error:
        task = asyncio.current_task()
        plain = plain_exception(error)
        if plain is error or (task is not None and task.cancelling()):
            raise
        raise plain from error


async def awaited(value: Any) -> Any:
    """What an awaitable gives, as a coroutine, which alone can be run."""
    return await value


def run_without_loop(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine that waits for nothing: synchronous code needs no event loop."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise RuntimeError("synchronous code waited for an event loop")


def is_awaitable(value: Any) -> bool:
    """What `inspect.isawaitable` says, without its slow look through abstract classes."""
    kind = cast("type[Any]", type(value))
    return hasattr(kind, "__await__") or (kind is GeneratorType and inspect.isawaitable(value))


def _as_plain_exception(function: Callable[[], Result]) -> Result:
    try:
        return function()
    except BaseException as error:
        plain = plain_exception(error)
        if plain is error:
            raise
        raise plain from error


def plain_exception(error: BaseException) -> Exception:
    """What a future can carry of what user code raised in a thread.

    A future refuses StopIteration, and whoever awaits it would wait for ever. And in a thread of
    its own, code that exits or is cancelled can mean only itself.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    carrier = RuntimeError(f"{type(error).__name__}: {text_of(error)}")
    carrier.__cause__ = error
    return carrier
