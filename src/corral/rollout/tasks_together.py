"""Runs coroutines together so that no failure is lost and nothing is left running."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

Result = TypeVar("Result")


async def run_together(steps: Sequence[Coroutine[Any, Any, Result]]) -> list[Result]:
    """All results in order; the first error in time cancels the others and is raised.

    When this returns or raises, by cancellation too, every task has ended.
    """
    tasks = [asyncio.create_task(step) for step in steps]
    if not tasks:
        return []
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            if task in done:
                task.result()  # raises what the task raised
        return [task.result() for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
