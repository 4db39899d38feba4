"""Calls run with checked arguments; whatever a model writes gets a one-line answer."""

import asyncio
import contextlib
import contextvars
import threading
import time
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from corral.env import tools_of
from corral.env.arguments import ArgumentError
from corral.errors import InfrastructureFault

trace = contextvars.ContextVar("trace", default="unset")


class Colour(Enum):
    RED = "red"


class Bench:
    """One tool for each kind of argument and outcome; every tool shows what it received."""

    def __init__(self):
        self.running = 0
        self.most_running = 0
        self.order: list[int] = []

    def integer(self, n: int) -> str:
        """Take n.

        Args:
            n: The n.
        """
        return repr(n)

    def text(self, s: str) -> str:
        """Take s.

        Args:
            s: The s.
        """
        return repr(s)

    def flag(self, b: bool) -> str:
        """Take b.

        Args:
            b: The b.
        """
        return repr(b)

    def number(self, x: float) -> str:
        """Take x.

        Args:
            x: The x.
        """
        return repr(x)

    def items(self, xs: list[int]) -> str:
        """Take xs.

        Args:
            xs: The xs.
        """
        return repr(xs)

    def level(self, level: Literal[1, 2]) -> str:
        """Take a level.

        Args:
            level: The level.
        """
        return repr(level)

    def colour(self, colour: Colour) -> str:
        """Take a colour.

        Args:
            colour: The colour.
        """
        return repr(colour)

    def choice(self, side: str) -> str:
        """Take a side.

        Args:
            side: The side (choices: ["left", "right"])
        """
        return repr(side)

    def bounded(self, n: Annotated[int, Field(ge=1, le=20)]) -> str:
        """Take n.

        Args:
            n: The n.
        """
        return repr(n)

    def defaults(self, n: int = 7, s: str = None) -> str:  # noqa: RUF013 - users write this
        """Take what is given.

        Args:
            n: The n.
            s: The s.
        """
        return repr((n, s))

    def nothing(self) -> None:
        """Return nothing."""

    def mapping(self) -> dict[str, Any]:
        """Return a mapping."""
        return {"a": True}

    def blocks(self) -> list[dict[str, str]]:
        """Return content blocks."""
        return [{"type": "text", "text": "hi"}]

    def plain_list(self) -> list[str]:
        """Return words."""
        return ["a", "b"]

    def fails(self) -> str:
        """Fail."""
        raise ValueError("Game over.")

    def exhausted(self) -> str:
        """Run out."""
        return next(iter(()))

    def offline(self) -> str:
        """Lose the connection."""
        raise ConnectionResetError("peer gone")

    def reads_context(self) -> str:
        """Read a context variable."""
        return trace.get()

    def hides_async(self) -> Any:
        """Look synchronous and hand back a coroutine."""
        return self.waits()

    async def waits(self) -> str:
        """Wait."""
        await asyncio.sleep(0)
        return "waited"

    def counts_itself(self, n: int) -> str:
        """Note how many run at once.

        Args:
            n: The turn.
        """
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        self.order.append(n)
        time.sleep(0.001)
        self.running -= 1
        return ""


TOOLS = tools_of(environment_class=Bench)


async def answer(name: str, arguments: Any = None) -> str:
    result = await TOOLS.bind(Bench()).call(name, {} if arguments is None else arguments)
    assert not result.is_error, result.content
    return result.content


async def complaint(name: str, arguments: Any) -> str:
    result = await TOOLS.bind(Bench()).call(name, arguments)
    assert result.is_error
    assert isinstance(result.content, str)
    assert "\n" not in result.content
    return result.content


@pytest.mark.parametrize(
    ("name", "arguments", "received"),
    [
        ("integer", {"n": "3"}, "3"),
        ("integer", {"n": 3.0}, "3"),
        ("integer", '{"n": 3}', "3"),
        ("text", {"s": 4}, "'4'"),
        ("flag", {"b": "true"}, "True"),
        ("flag", {"b": 0}, "False"),
        ("number", {"x": "2.5"}, "2.5"),
        ("items", {"xs": ["1", 2]}, "[1, 2]"),
        ("items", {"xs": "[1, 2]"}, "[1, 2]"),
        ("level", {"level": "2"}, "2"),
        ("colour", {"colour": "red"}, "<Colour.RED: 'red'>"),
        ("choice", {"side": "left"}, "'left'"),
        ("bounded", {"n": 20}, "20"),
        ("defaults", {}, "(7, None)"),
        ("defaults", {"s": None}, "(7, None)"),
    ],
)
async def test_arguments_are_coerced_where_unambiguous(name: str, arguments: Any, received: str):
    assert await answer(name, arguments) == received


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("integer", {"n": "abc"}, "integer: argument 'n' must be an integer, not 'abc'."),
        ("integer", {"n": 3.5}, "integer: argument 'n' must be an integer, not 3.5."),
        ("integer", {"n": True}, "integer: argument 'n' must be an integer, not True."),
        ("integer", {"n": None}, "integer: argument 'n' must be an integer, not None."),
        ("integer", {"n": "9" * 5000}, "integer: argument 'n' must be an integer, not '999"),
        ("integer", {}, "integer: argument 'n' (an integer) is missing."),
        (
            "integer",
            {"n": 1, "m": 2},
            "integer: there is no argument 'm'. Its arguments: n (an integer).",
        ),
        ("nothing", {"n": 1}, "nothing: there is no argument 'n'. It takes no arguments."),
        ("integer", [1], "integer: arguments must be an object, not [1]."),
        ("integer", "n=1", "integer: arguments must be an object, not 'n=1'."),
        ("integer", "[" * 100_000, "integer: arguments must be an object, not '[[["),
        ("text", {"s": True}, "text: argument 's' must be a string, not True."),
        ("flag", {"b": "maybe"}, "flag: argument 'b' must be true or false, not 'maybe'."),
        ("number", {"x": float("nan")}, "number: argument 'x' must be a number, not nan."),
        ("items", {"xs": [1, "b"]}, "items: argument 'xs'[1]: Input should be a valid integer"),
        ("items", {"xs": 3}, "items: argument 'xs' must be a list, not 3."),
        ("level", {"level": 3}, "level: argument 'level' must be one of 1, 2, not 3."),
        ("colour", {"colour": "green"}, "colour: argument 'colour' must be one of 'red', not"),
        ("choice", {"side": "up"}, "choice: argument 'side' must be one of 'left', 'right', not"),
        ("bounded", {"n": 21}, "bounded: argument 'n': Input should be less than or equal to 20"),
    ],
)
@pytest.mark.contract(16)
async def test_a_wrong_argument_is_explained_to_the_model(name: str, arguments: Any, text: str):
    content = await complaint(name, arguments)
    assert eval(content).keys() == {"error"}
    assert eval(content)["error"].startswith(text)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("nothing", "None"),
        ("mapping", "{'a': True}"),
        ("blocks", [{"type": "text", "text": "hi"}]),
        ("plain_list", "['a', 'b']"),
        ("hides_async", "waited"),
        ("waits", "waited"),
    ],
)
@pytest.mark.contract(16)
@pytest.mark.report("P082")
async def test_results_become_tool_message_content(name: str, content: Any):
    assert await answer(name) == content


@pytest.mark.contract(16)
async def test_an_exception_in_a_tool_is_text_for_the_model():
    assert await complaint("fails", {}) == "{'error': 'Game over.'}"


@pytest.mark.contract(16)
async def test_an_unknown_tool_is_answered():
    assert await complaint("reset", {}) == "{'error': 'Tool reset not found.'}"


async def test_stop_iteration_in_a_tool_does_not_hang():
    async with asyncio.timeout(5):
        assert "StopIteration" in await complaint("exhausted", {})


async def test_a_lost_connection_is_not_the_models_fault():
    with pytest.raises(InfrastructureFault, match=r"Bench\.offline: ConnectionResetError: peer"):
        await TOOLS.bind(Bench()).call("offline", {})


async def test_threads_see_the_callers_context():
    trace.set("seen")
    assert await answer("reads_context") == "seen"


async def test_sync_methods_of_one_instance_run_in_order_one_at_a_time():
    bench = Bench()
    bound = TOOLS.bind(bench)
    await asyncio.gather(*(bound.call("counts_itself", {"n": n}) for n in range(8)))
    assert bench.most_running == 1
    assert bench.order == list(range(8))


@pytest.mark.report("P132")
async def test_a_sync_tool_of_256_episodes_sleeps_at_the_same_time():
    barrier = threading.Barrier(256)

    def meet() -> str:
        """Wait until all are here."""
        barrier.wait(timeout=20)
        return "met"

    tools = tools_of([meet])
    results = await asyncio.gather(*(tools.bind().call("meet", {}) for _ in range(256)))
    assert {result.content for result in results} == {"met"}


@pytest.mark.report("P133")
async def test_the_event_loop_goes_on_while_a_tool_blocks():
    release = threading.Event()

    def block() -> str:
        """Block."""
        return "released" if release.wait(timeout=20) else "waited in vain"

    call = asyncio.create_task(tools_of([block]).bind().call("block", {}))
    await asyncio.sleep(0.001)
    release.set()
    assert (await call).content == "released"


@pytest.mark.report("P132")
@pytest.mark.contract(18)
async def test_async_tools_wait_at_the_same_time():
    arrived = asyncio.Barrier(16)

    async def meet() -> str:
        """Wait until all are here."""
        await arrived.wait()
        return "met"

    bound = tools_of([meet]).bind()
    async with asyncio.timeout(5):
        await asyncio.gather(*(bound.call("meet", {}) for _ in range(16)))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(
    name=st.sampled_from(["integer", "text", "flag", "number", "items", "level", "choice"]),
    key=st.sampled_from(["n", "s", "b", "x", "xs", "level", "side"]),
    value=json_values,
    is_whole=st.booleans(),
)
@settings(max_examples=60)
def test_whatever_a_model_writes_is_taken_or_explained(
    name: str, key: str, value: Any, is_whole: bool
):
    tool = TOOLS.find(name)
    assert tool is not None
    with contextlib.suppress(ArgumentError):
        checked = tool.arguments.check(value if is_whole else {key: value})
        assert set(checked) == set(tool.schema["function"]["parameters"]["properties"])
