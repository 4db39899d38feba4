"""An environment is examined once, then constructed, reset, scored and closed."""

import functools
import logging
from fractions import Fraction
from typing import Any

import pytest

from corral.env import (
    call_get_reward,
    call_reset,
    check_reset_columns,
    close,
    is_done,
    metrics,
    prepare,
)
from corral.errors import EnvironmentFault, InfrastructureFault, ToolDefinitionError, UsageError


class Guess:
    def reset(self, secret: int, hint: str = "", **kwargs) -> str:
        self.secret, self.row = secret, kwargs
        return f"{hint}guess"

    def guess(self, n: int) -> str:
        """Guess.

        Args:
            n: Your guess.
        """
        return "yes" if n == self.secret else "no"

    def get_reward(self) -> float:
        return 1.0


def returning(value: Any, *, member: str = "reset") -> Any:
    def method(self: Any, **kwargs: Any) -> Any:
        if isinstance(value, BaseException):
            raise value
        return value

    return type(
        "Made",
        (),
        {member: method, "reset": method}
        if member == "reset"
        else {member: lambda self: method(self)},
    )()


@pytest.mark.contract(6)
def test_preparing_constructs_one_instance_and_hands_it_out_first():
    made: list[Guess] = []

    def factory() -> Guess:
        made.append(Guess())
        return made[-1]

    kind = prepare(factory)
    assert (kind.name, kind.cls, kind.has_reward) == ("Guess", Guess, True)
    assert kind.tools.names == ("guess",)
    assert len(made) == 1
    first, second = kind.construct().instance, kind.construct().instance
    assert [first, second] == made
    assert first is not second


def test_plain_functions_join_the_tools():
    def look() -> str:
        """Look."""
        return ""

    assert prepare(Guess, standalone=[look]).tools.names == ("look", "guess")


class NoReset:
    pass


class NeedsUrl:
    def __init__(self, url: str):
        self.url = url

    def reset(self): ...


class RewardOfArgument:
    def reset(self): ...

    def get_reward(self, completion): ...


class BrokenTool:
    def reset(self): ...

    def move(self): ...


async def async_factory():
    return Guess()


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (NoReset, r"NoReset must define a callable `reset`. Add: def reset"),
        (Guess(), r"Guess object.*Give the class Guess itself"),
        (NeedsUrl, r"NeedsUrl needs url.*functools.partial\(NeedsUrl, url=...\)"),
        (RewardOfArgument, r"RewardOfArgument.get_reward.*needs completion"),
        (async_factory, r"async_factory is async.*`async def reset`"),
        (lambda: None, "NoneType must define a callable `reset`"),
    ],
)
def test_a_factory_that_makes_no_environment_is_refused(factory: Any, message: str):
    with pytest.raises(UsageError, match=message):
        prepare(factory)


def test_a_partial_is_a_factory():
    assert prepare(functools.partial(NeedsUrl, "ws://")).construct().instance.url == "ws://"


def test_a_broken_tool_is_found_when_preparing():
    with pytest.raises(ToolDefinitionError, match=r"BrokenTool\.move has no docstring"):
        prepare(BrokenTool)


def test_a_constructor_that_raises_says_where():
    def factory() -> Guess:
        raise OSError("no licence")

    with pytest.raises(EnvironmentFault, match=r"factory\(\) raised OSError: no licence"):
        prepare(factory)


@pytest.mark.contract(8)
async def test_reset_receives_the_whole_row():
    environment = Guess()
    assert (
        await call_reset(environment, {"prompt": "p", "secret": 3, "hint": "just "}) == "just guess"
    )
    assert (environment.secret, environment.row) == (3, {"prompt": "p"})


async def test_reset_may_be_async_and_row_names_are_free():
    class Waiting:
        async def reset(self, executor: str, function: str) -> str:
            return executor + function

    assert await call_reset(Waiting(), {"executor": "a", "function": "b"}) == "ab"


class Strict:
    def reset(self, secret: int) -> str:
        raise AssertionError("must not be called")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"secret": 1, "prompt": "p"},
            r"Strict.reset does not take the dataset column 'prompt'.*"
            r"def reset\(self, secret, \*\*kwargs\)",
        ),
        ({"secret": 1, "a": 1, "b": 2}, r"columns 'a', 'b'"),
        ({}, r"Strict.reset needs 'secret'.*columns: none.*secret=None"),
    ],
)
async def test_a_row_that_reset_does_not_take_names_the_column(row: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        check_reset_columns(Strict(), row)
    with pytest.raises(UsageError, match=message):
        await call_reset(Strict(), row)


@pytest.mark.parametrize("observation", [None, "text", [{"type": "text", "text": "hi"}]])
async def test_observations_pass_through(observation: Any):
    assert await call_reset(returning(observation), {}) == observation


@pytest.mark.parametrize(
    "observation", [("obs", {}), {"board": 1}, 3, ["a"], [{"type": "text", "text": None}]]
)
async def test_what_is_no_observation_is_refused(observation: Any):
    with pytest.raises(EnvironmentFault, match=r"Made.reset returned a .*Return the text"):
        await call_reset(returning(observation), {})


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (KeyError("secret"), EnvironmentFault),
        (StopIteration(), EnvironmentFault),
        (ConnectionRefusedError("down"), InfrastructureFault),
        (TimeoutError("slow"), InfrastructureFault),
    ],
)
async def test_faults_of_reset_say_whose_they_are(error: Exception, fault: type[Exception]):
    with pytest.raises(fault, match=r"Made\.reset"):
        await call_reset(returning(error), {})


class ZeroDimensional:
    def item(self) -> float:
        return 0.5


@pytest.mark.parametrize(
    ("value", "reward"),
    [
        (1, 1.0),
        (True, 1.0),
        (0.25, 0.25),
        (None, None),
        (ZeroDimensional(), 0.5),
        (Fraction(1, 2), 0.5),
    ],
)
@pytest.mark.report("P064")
async def test_rewards_are_numbers_or_none(value: Any, reward: float | None):
    assert await call_get_reward(returning(value, member="get_reward")) == reward


@pytest.mark.report("P206")
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e200, "1.0", [1.0], 10**400])
async def test_a_reward_that_is_no_finite_number_is_a_fault(value: Any):
    with pytest.raises(EnvironmentFault, match=r"Made\.get_reward"):
        await call_get_reward(returning(value, member="get_reward"))


async def test_an_environment_without_reward_has_none():
    assert await call_get_reward(NoReset()) is None
    assert not prepare(Strict).has_reward


def test_done_is_an_attribute_or_property():
    class Board:
        lives = 0

        @property
        def done(self) -> bool:
            return self.lives == 0

    board = Board()
    assert is_done(board)
    board.lives = 1
    assert not is_done(board)
    assert not is_done(NoReset())


def test_a_done_method_says_nothing():
    assert not is_done(returning(True, member="done"))


def test_a_property_that_raises_is_a_fault():
    class Board:
        @property
        def done(self) -> bool:
            raise KeyError("lives")

    with pytest.raises(EnvironmentFault, match=r"Board\.done"):
        is_done(Board())


def test_metrics_are_the_finite_numbers():
    environment = NoReset()
    assert metrics(environment) == {}
    environment.metrics = {
        "a": 1,
        "b": True,
        "c": ZeroDimensional(),
        "d": "text",
        "e": float("nan"),
    }
    assert metrics(environment) == {"a": 1.0, "b": 1.0, "c": 0.5}
    environment.metrics = ["mine"]
    assert metrics(environment) == {}


async def test_close_is_called_and_its_failure_only_logged(caplog: pytest.LogCaptureFixture):
    class Open:
        is_open = True

        async def close(self):
            self.is_open = False

    environment = Open()
    await close(environment)
    assert not environment.is_open
    with caplog.at_level(logging.WARNING):
        await close(returning(OSError("stuck"), member="close"))
    assert "Made.close raised OSError: stuck" in caplog.text
    await close(NoReset())


async def test_a_close_that_is_a_tool_is_not_called():
    class House:
        def close(self, door: str):
            raise AssertionError("must not be called")

    await close(House())
