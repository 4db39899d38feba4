"""The calls of one message: order, concurrency, faults."""

import asyncio
import threading
import time
from typing import Any

import pytest

from corral.env import prepare, tools_of
from corral.errors import InfrastructureFault
from corral.records import MalformedCall, ToolCall
from corral.rollout.tool_calls import answer_calls


class Workshop:
    """Synchronous and asynchronous tools that note when they begin and end."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.threads: set[int] = set()
        self.meeting = asyncio.Barrier(2)

    def reset(self) -> None: ...

    def saw(self, n: int) -> str:
        """Saw.

        Args:
            n: Which board.
        """
        self.threads.add(threading.get_ident())
        self.events.append(f"begin {n}")
        time.sleep(0.01)
        self.events.append(f"end {n}")
        return f"board {n}"

    async def meet(self, n: int) -> str:
        """Wait for another.

        Args:
            n: Who.
        """
        await self.meeting.wait()
        self.events.append(f"met {n}")
        return f"met {n}"

    async def slow(self, n: int) -> str:
        """Take n hundredths of a second.

        Args:
            n: Hundredths.
        """
        await asyncio.sleep(n / 100)
        self.events.append(f"slow {n}")
        return f"slow {n}"

    async def broken(self) -> str:
        """Lose the connection."""
        raise ConnectionResetError("gone")


async def answers(instance: Workshop, *calls: Any) -> tuple[list[Any], Any]:
    tools = prepare(Workshop).tools
    made = [
        call if isinstance(call, MalformedCall) else ToolCall(name=call[0], arguments=call[1])
        for call in calls
    ]
    messages, counts = await answer_calls(made, tools, tools.bind(instance))
    return [message["content"] for message in messages], counts


async def test_synchronous_methods_run_one_after_another_in_call_order() -> None:
    shop = Workshop()
    contents, counts = await answers(shop, *[("saw", {"n": n}) for n in (3, 1, 2)])
    assert contents == ["board 3", "board 1", "board 2"]
    assert shop.events == [f"{what} {n}" for n in (3, 1, 2) for what in ("begin", "end")]
    assert threading.get_ident() not in shop.threads
    assert counts.calls == 3


@pytest.mark.contract(18)
async def test_asynchronous_methods_run_at_the_same_time() -> None:
    async with asyncio.timeout(2):
        contents, _ = await answers(Workshop(), ("meet", {"n": 1}), ("meet", {"n": 2}))
    assert contents == ["met 1", "met 2"]


@pytest.mark.contract(18)
async def test_results_are_in_call_order_whichever_ends_first() -> None:
    shop = Workshop()
    contents, _ = await answers(shop, ("slow", {"n": 3}), ("slow", {"n": 1}))
    assert contents == ["slow 3", "slow 1"]
    assert shop.events == ["slow 1", "slow 3"]


async def test_a_synchronous_method_runs_between_what_was_called_before_and_after() -> None:
    shop = Workshop()
    await answers(shop, ("slow", {"n": 3}), ("saw", {"n": 1}), ("slow", {"n": 0}))
    assert shop.events == ["slow 3", "begin 1", "end 1", "slow 0"]


async def test_standalone_functions_run_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=2)

    def wait(n: int) -> int:
        """Wait for the other.

        Args:
            n: Who.
        """
        both.wait()
        return n

    tools = tools_of([wait])
    calls = [ToolCall(name="wait", arguments={"n": n}) for n in (1, 2)]
    messages, _ = await answer_calls(calls, tools, tools.bind())
    assert [message["content"] for message in messages] == ["1", "2"]


async def test_a_malformed_call_keeps_its_place() -> None:
    broken = MalformedCall(text="{", error="That is no call.")
    contents, counts = await answers(Workshop(), ("saw", {"n": 1}), broken, ("saw", {"n": "x"}))
    assert contents[:2] == ["board 1", "{'error': 'That is no call.'}"]
    assert contents[2].startswith("{'error': ")
    assert (counts.calls, counts.failures, counts.malformed) == (3, 2, 1)


async def test_a_lost_connection_is_a_fault_and_nothing_is_left_running() -> None:
    shop = Workshop()
    with pytest.raises(InfrastructureFault, match="gone"):
        await answers(shop, ("broken", {}), ("slow", {"n": 2}))
    assert shop.events == ["slow 2"]
