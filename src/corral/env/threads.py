"""Synchronous user code runs in threads, so that one slow tool never holds up other episodes."""

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import cache, partial
from types import MappingProxyType
from typing import Any, TypeVar

Result = TypeVar("Result")

MAX_THREADS = 512
"""Most of them sleep in a socket or a subprocess; a thread is started only when all are busy."""


@cache
def environment_threads() -> ThreadPoolExecutor:
    """The pool all environments of the process share, made on first use."""
    return ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="corral-environment")


async def run_in_thread(
    function: Callable[[], Result], *, executor: Executor | None = None
) -> Result:
    """Run ``function`` in a thread of ``executor`` (the shared pool by default) and wait for it.

    The caller's context variables are visible to it. Cancelling the wait does not stop the thread.
    """
    context = contextvars.copy_context()

    def run() -> Result:
        return context.run(_without_stop_iteration, function)

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
        return await function(**arguments)
    value = await run_in_thread(partial(function, **arguments), executor=executor)
    # A plain wrapper around an async function hands back what is yet to be awaited.
    return await value if inspect.isawaitable(value) else value


def _without_stop_iteration(function: Callable[[], Result]) -> Result:
    try:
        return function()
    except StopIteration as error:
        # A future refuses to carry StopIteration, and whoever awaits it would wait for ever.
        raise RuntimeError(f"StopIteration: {error.value}") from error
