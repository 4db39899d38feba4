"""Sessions that share threads: in order, one call at a time, and nobody waits for a slow one."""

import asyncio
import threading
import time
from typing import Any, cast

import pytest

from corral.serve.kinds import kind_of
from corral.serve.shared_threads import SharedThread
from corral.worlds.guess_number import GuessNumber
from support.serve_sessions import Awkward, Loose


async def test_quick_calls_of_all_sessions_run_in_one_thread() -> None:
    sessions = [SharedThread() for _ in range(30)]
    idents = [session.submit(threading.get_ident) for session in sessions for _ in range(5)]
    assert len(set(await asyncio.gather(*idents))) == 1


async def test_calls_of_a_session_keep_their_order_and_never_overlap() -> None:
    session, others = SharedThread(), [SharedThread() for _ in range(8)]
    done: list[int] = []
    inside = 0

    def call(number: int) -> int:
        nonlocal inside
        inside += 1
        assert inside == 1
        time.sleep(0.004)  # longer than the others' patience: the thread changes
        inside -= 1
        done.append(number)
        return number

    answers = []
    for number in range(20):
        answers.append(session.submit(lambda number=number: call(number)))
        for other in others:
            other.submit(lambda: None)
        await asyncio.sleep(0.001)
    assert await asyncio.gather(*answers) == list(range(20)) == done


async def test_nobody_waits_for_slow_calls() -> None:
    slow, quick = [SharedThread() for _ in range(10)], SharedThread()
    gate = threading.Event()
    held = [session.submit(gate.wait) for session in slow]
    async with asyncio.timeout(2.0):
        for _ in range(50):
            await quick.submit(lambda: None)
    assert not any(future.done() for future in held)
    gate.set()
    assert await asyncio.gather(*held) == [True] * 10


async def test_a_wait_given_up_leaves_the_call_running_and_the_next_behind_it() -> None:
    session, gate = SharedThread(), threading.Event()
    given_up = session.submit(gate.wait)
    await asyncio.sleep(0.02)
    given_up.cancel()
    behind = session.submit(lambda: "behind")
    await asyncio.sleep(0.05)
    assert not behind.done()
    gate.set()
    assert await behind == "behind"


async def test_what_is_raised_and_what_is_awaitable_arrive() -> None:
    async def later() -> int:
        await asyncio.sleep(0)
        return 3

    session = SharedThread()
    assert await session.submit(later) == 3
    with pytest.raises(RuntimeError, match="StopIteration"):
        await session.submit(lambda: next(iter(())))
    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        await session.submit(lambda: exit(3))
    assert await session.submit(lambda: 4) == 4


def test_who_shares_threads() -> None:
    class AsyncTool(GuessNumber):
        REQUIRES_OWN_THREAD = False

        async def look(self) -> str:
            """Look around."""
            return "nothing"

    class Quick(GuessNumber):
        REQUIRES_OWN_THREAD = False

    worlds = (GuessNumber, Quick, AsyncTool, Awkward, Loose)
    owners = [cls for cls in worlds if cast("Any", kind_of(cls)).has_own_threads]
    assert owners == [GuessNumber, AsyncTool, Awkward]
