"""Public methods become tools, and what cannot be one is refused when the run is set up."""

from __future__ import annotations  # string annotations must work in real classes

import functools
import inspect
from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest

from corral.env import discover_tools, tools_of
from corral.errors import ToolDefinitionError


def wrapped_without_name(function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(self: Any, x: int) -> Any:
        """Do.

        Args:
            x: The x.
        """
        return function(self, x)

    return wrapper


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Base:
    def inherited(self) -> str:
        """Do what the base does."""
        return "base"


class Everything(Base):
    class Mode(Enum):
        FAST = "fast"

    def __init__(self):
        self.on_instance = lambda: "no tool"
        type(self).added = added

    def reset(self, **kwargs): ...

    def get_reward(self): ...

    def close(self):
        """Free the socket."""

    def zoom(self, mode: Mode) -> str:
        """Zoom.

        Args:
            mode: How.
        """
        return mode.value

    async def asynchronous(self) -> str:
        """Wait."""
        return "waited"

    @staticmethod
    def static(x: int) -> str:
        """Be static.

        Args:
            x: The x.
        """
        return str(x)

    @classmethod
    def on_class(cls) -> str:
        return "no tool"

    @property
    def state(self) -> str:
        raise AssertionError("discovery must not look")

    partial = functools.partial(print)

    @logged
    def logged_move(self, x: int) -> str:
        """Move.

        Args:
            x: Where to.
        """
        return str(x)

    def _private(self): ...


def added(self: Any) -> str:
    """Come late."""
    return "late"


@pytest.mark.contract(13, 14, 19)
def test_the_discovery_table():
    Everything()
    tools = {tool.name: tool for tool in discover_tools(Everything)}
    assert list(tools) == ["added", "asynchronous", "inherited", "logged_move", "static", "zoom"]
    assert [tool.name for tool in tools.values() if tool.is_async] == ["asynchronous"]
    assert tools["zoom"].source == "Everything.zoom"
    properties = tools["logged_move"].schema["function"]["parameters"]["properties"]
    assert properties == {"x": {"type": "integer", "description": "Where to."}}
    mode = tools["zoom"].schema["function"]["parameters"]["properties"]["mode"]
    assert mode == {"type": "string", "enum": ["fast"], "description": "How."}


def test_an_override_inherits_the_docstring_it_overrides():
    class Child(Base):
        def inherited(self) -> str:
            return "child"

    (tool,) = discover_tools(Child)
    assert tool.schema["function"]["description"] == "Do what the base does."


def test_close_with_a_parameter_is_a_tool():
    class House:
        def close(self, door: str) -> str:
            """Close a door.

            Args:
                door: Which.
            """
            return door

    assert tools_of(environment_class=House).names == ("close",)


def test_one_function_under_two_names_is_one_tool():
    class Fight:
        def hit(self) -> str:
            """Hit."""
            return "hit"

        attack = hit

    assert tools_of(environment_class=Fight).names == ("hit",)


def hit() -> str:
    """Hit anything."""
    return "hit"


def reset() -> str:
    """Reset."""
    return ""


@pytest.mark.report("P077")
def test_describing_a_function_leaves_it_as_it_was():
    before = inspect.signature(hit), dict(vars(hit)), hit.__doc__, dict(hit.__annotations__)
    first, second = tools_of([hit], Base), tools_of([hit])
    assert first.schemas[0] == second.schemas[0]
    after = inspect.signature(hit), dict(vars(hit)), hit.__doc__, dict(hit.__annotations__)
    assert after == before
    assert first.tools[0].function is hit


@pytest.mark.contract(14)
def test_plain_functions_come_first():
    assert tools_of([hit], Base).names == ("hit", "inherited")
    assert [schema["function"]["name"] for schema in tools_of([hit], Base).schemas] == [
        "hit",
        "inherited",
    ]


class Clash:
    def hit(self) -> str:
        """Hit the clash."""
        return "clash"


class Decorated:
    @wrapped_without_name
    def left(self, x: int) -> str: ...

    @wrapped_without_name
    def right(self, x: int) -> str: ...


class NoSelf:
    def move() -> str:
        """Move."""
        return ""


class Undocumented:
    def move(self, x: int) -> str:
        return ""


class MethodDone:
    def done(self) -> bool:
        return True


class Generator:
    def move(self):
        """Move."""
        yield "moved"


@pytest.mark.parametrize(
    ("standalone", "environment", "message"),
    [
        ([hit, hit], None, "hit and hit are both called 'hit'.*Rename"),
        ([hit], Clash, r"hit and Clash\.hit are both called 'hit'"),
        ([], Decorated, r"Decorated\.left and Decorated\.right.*'wrapper'.*functools\.wraps"),
        ([reset], None, "reset would be a tool called 'reset'"),
        ([lambda: None], None, "a tool called '<lambda>'"),
        ([functools.partial(hit)], None, "partial.*Wrap it: def my_tool"),
        ([Everything], None, "a tool is a function with a name"),
        ([], NoSelf, r"NoSelf\.move takes no self.*def move\(self\)"),
        ([], Undocumented, r"Undocumented\.move has no docstring.*_move to hide"),
        ([], MethodDone, r"MethodDone\.done is a method.*@property"),
        ([], Generator, r"Generator\.move is a generator.*Return the text"),
    ],
)
@pytest.mark.contract(15, 19)
@pytest.mark.report("P079")
def test_what_cannot_be_a_tool_is_refused_by_name(
    standalone: list[Any], environment: type | None, message: str
):
    with pytest.raises(ToolDefinitionError, match=message) as caught:
        tools_of(standalone, environment)
    assert "\n" not in str(caught.value)
