"""What user code does to itself stays with it."""

import asyncio
import sys
from typing import Any

import numpy as np
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


async def leave_at_once() -> str:
    """Leave from the event loop."""
    sys.exit("good-bye")


async def interrupt() -> str:
    """Interrupt."""
    raise KeyboardInterrupt


def interrupt_in_a_thread() -> str:
    """Interrupt."""
    raise KeyboardInterrupt


def end_of_a_generator() -> str:
    """Raise what only generators should."""
    raise GeneratorExit


async def many_at_once() -> str:
    """Fail in two ways, one of them an exit."""
    raise BaseExceptionGroup("two", [SystemExit(1), ValueError("x")])


class Unspeakable(Exception):
    """Cannot even say what it is."""

    def __str__(self) -> str:
        raise ValueError("no text")


def unspeakable() -> str:
    """Fail without being able to say why."""
    raise Unspeakable


class Shy:
    """Cannot be shown."""

    def __str__(self) -> str:
        raise ValueError("no text of it")


def shy() -> Any:
    """Return what cannot be shown."""
    return Shy()


def generator() -> Any:
    """Return what is no answer."""
    return (n for n in (1, 2))


def endless_number() -> int:
    """Return a number that Python refuses to write."""
    return 10**5000


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
        (leave_at_once, "SystemExit: good-bye"),
        (interrupt, "KeyboardInterrupt"),
        (interrupt_in_a_thread, "KeyboardInterrupt"),
        (end_of_a_generator, "GeneratorExit"),
        (many_at_once, "BaseExceptionGroup: two"),
        (unspeakable, "its text raised ValueError"),
        (shy, "no text of it"),
        (generator, "returned a generator"),
        (endless_number, "limit"),
    ],
)
async def test_a_tool_that_exits_is_an_error_for_the_model(tool: Any, said: str):
    result = await tools_of([tool]).bind().call(tool.__name__, {})
    assert result.is_error
    assert said in result.content


async def test_an_exit_on_the_event_loop_ends_neither_it_nor_its_neighbours():
    bound = tools_of([leave_at_once, people]).bind()
    left, met = await asyncio.gather(bound.call("leave_at_once", {}), bound.call("people", {}))
    assert left.is_error
    assert not met.is_error


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (np.float32(1.5), "1.5"),
        (np.int64(3), "3"),
        (b"raw", "b'raw'"),
        ([{"type": "text"}], "[{'type': 'text'}]"),
        ([{"type": "text", "text": 5}], "[{'type': 'text', 'text': 5}]"),
        ([{"type": ["text"]}], "[{'type': ['text']}]"),
        ({1: {2}}, "{1: {2}}"),
    ],
)
@pytest.mark.report("P082")
async def test_whatever_a_tool_returns_is_shown_as_text(value: Any, content: str):
    def tell() -> Any:
        """Return it."""
        return value

    assert (await tools_of([tell]).bind().call("tell", {})).content == content


async def test_what_one_call_does_to_a_default_no_other_sees():
    def collect(name: str, into: list[str] = []) -> list[str]:  # noqa: B006 - users write this
        """Collect.

        Args:
            name: What.
            into: Where.
        """
        into.append(name)
        return into

    bound = tools_of([collect]).bind()
    results = [await bound.call("collect", {"name": name}) for name in ("a", "b")]
    assert [result.content for result in results] == ["['a']", "['b']"]


@pytest.mark.parametrize(
    "name", ["reset", "get_reward", "close", "_hidden", "look", "made", "data"]
)
@pytest.mark.parametrize("prefix", ["", "Safe.", "self.", " "])
async def test_only_tools_can_be_called(name: str, prefix: str):
    touched: list[str] = []

    class Safe:
        data = print

        def reset(self, **row: Any) -> None:
            touched.append("reset")

        def get_reward(self) -> float:
            touched.append("get_reward")
            return 1.0

        def close(self) -> None:
            touched.append("close")

        def _hidden(self) -> None:
            touched.append("_hidden")

        @property
        def look(self) -> str:
            touched.append("look")
            return "looked"

        @classmethod
        def made(cls) -> None:
            touched.append("made")

        def open(self) -> str:
            """Open it."""
            return "open"

    result = await tools_of(environment_class=Safe).bind(Safe()).call(prefix + name, {})
    assert result.content == repr({"error": f"Tool {prefix}{name} not found."})
    assert not touched


async def test_a_long_name_is_not_told_back_in_full():
    result = await tools_of([people]).bind().call("x" * 100_000, {})
    assert len(result.content) < 200


async def test_of_many_unknown_arguments_a_few_are_named():
    result = await tools_of([people]).bind().call("people", {f"k{n}": n for n in range(10_000)})
    assert len(result.content) < 500
    assert "And 9995 more." in result.content


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": NaN}', '{"a": 1e999}'])
async def test_json_text_that_two_readers_would_read_differently_is_no_object(text: str):
    def take(rows: dict[str, float]) -> str:
        """Take rows.

        Args:
            rows: The rows.
        """
        return repr(rows)

    result = await tools_of([take]).bind().call("take", {"rows": text})
    assert "must be an object" in str(result.content)
    result = await tools_of([take]).bind().call("take", text)
    assert "must be an object" in str(result.content)


async def test_true_inside_a_list_of_numbers_is_no_number():
    def take(xs: list[int]) -> str:
        """Take numbers.

        Args:
            xs: The numbers.
        """
        return repr(xs)

    result = await tools_of([take]).bind().call("take", {"xs": [1, True]})
    assert "true and false are no numbers" in str(result.content)


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
