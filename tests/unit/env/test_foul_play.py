"""What user code does to itself stays with it."""

import asyncio
import sys
from typing import Any

import pytest

from corral.chat.tokenizer import encode
from corral.env import call_reset, tools_of
from support.tiny_models import tiny_tokenizer


def leave() -> str:
    """Leave."""
    sys.exit("good-bye")


def cancel() -> str:
    """Cancel."""
    raise asyncio.CancelledError


async def cancel_later() -> str:
    """Await a task that was cancelled."""
    task = asyncio.create_task(asyncio.sleep(30))
    task.cancel()
    await task
    return "never"


def people() -> list[dict[str, str]]:
    """List people."""
    return [{"type": "person", "name": "Bob"}]


def out_of_memory() -> str:
    """Fail without a text."""
    raise MemoryError


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        (leave, "SystemExit"),
        (cancel, "CancelledError"),
        (cancel_later, "CancelledError"),
        (out_of_memory, "Memory"),
    ],
)
async def test_a_tool_that_exits_is_an_error_for_the_model(tool: Any, said: str):
    result = await tools_of([tool]).bind().call(tool.__name__, {})
    assert result.is_error
    assert said in result.content


async def test_data_with_a_type_is_no_content_block():
    result = await tools_of([people]).bind().call("people", {})
    assert result.content == "[{'type': 'person', 'name': 'Bob'}]"


async def test_what_reset_does_to_its_row_no_other_sees():
    class Board:
        def reset(self, board: list[int], **row: Any) -> None:
            board.append(1)

    row = {"board": [0]}
    await call_reset(Board(), row)
    assert row == {"board": [0]}


def test_half_a_surrogate_pair_is_encoded():
    tokenizer = tiny_tokenizer()
    assert encode(tokenizer, "a\ud800b") == encode(tokenizer, "a?b")
