"""From JSON schema back to methods that give the same schema."""

import inspect
from enum import Enum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.env.docstring import ToolText, read_docstring
from corral.env.json_types import json_schema
from corral.env.schema import describe
from corral.env.signatures import (
    LEFT_OUT,
    ToolSpec,
    docstring,
    hint_of,
    method_of,
    python_name,
)

PLAIN = st.sampled_from([int, float, str, bool, Any, list, dict])
CHOICES = st.lists(st.text(min_size=1), min_size=1, max_size=3, unique=True).map(
    lambda values: Literal[tuple(values)]  # type: ignore[valid-type]
)
HINTS = st.recursive(
    PLAIN | CHOICES,
    lambda inner: st.one_of(
        inner.map(lambda hint: list[hint]),
        inner.map(lambda hint: dict[str, hint]),
        inner.map(lambda hint: hint | None if hint is not Any else Any),
        st.tuples(inner, inner).map(lambda pair: tuple[pair]),
        st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1] if Any not in pair else Any),
    ),
    max_leaves=5,
)


@given(HINTS)
def test_a_hint_made_from_a_schema_gives_the_schema_again(hint: Any):
    schema = json_schema(hint)
    assert json_schema(hint_of(schema)) == schema


def test_the_order_of_choices_is_the_schemas_own_whatever_was_made_before():
    for values in (["a", "b"], ["b", "a"]):
        schema = {"anyOf": [{"type": "string", "enum": values}, {"type": "integer"}]}
        assert json_schema(hint_of(schema)) == schema


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class World:
    def act(
        self,
        n: int,
        word: str = "x",
        *,
        kind: Literal["a", "b"] = "a",
        color: Color | None = None,
        size: int | str = 1,
        shade: str = "dark",
        where: tuple[int, float] = (0, 0.0),
    ) -> dict[str, list[int]]:
        """Act in some way.

        It goes over two paragraphs: this is the second.

            * and has a list

        Args:
            n: How often,
                in two lines.
            word: What: to say.
            kind: Which kind.
            color: Which color.
            size: How large.
            shade: How it looks (choices: ["dark", "light"])
            where: The place.

        Returns:
            What came
            of it.
        """
        return {}

    def look(self):
        """Look around."""


@pytest.mark.parametrize("name", ["act", "look"])
def test_a_method_made_from_a_schema_gives_the_schema_again(name: str):
    schema = describe(getattr(World, name), source="x", skips_self=True).schema
    function = schema["function"]
    spec = ToolSpec(
        name=function["name"],
        description=function["description"],
        parameters=function["parameters"],
        returns=function.get("return"),
    )
    method = method_of(spec, call)
    assert describe(method, source="y", skips_self=True).schema == schema
    assert inspect.iscoroutinefunction(method)


async def call(self: Any, arguments: dict[str, Any]) -> Any:
    return arguments


async def test_what_the_caller_leaves_out_is_left_out():
    schema = {
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {"default": None}},
        "required": ["b"],
    }
    method = method_of(ToolSpec(name="f", description="F.", parameters=schema), call)
    assert await method(object(), b="x") == {"b": "x"}
    assert await method(object(), b="x", a=1) == {"a": 1, "b": "x"}
    parameters = inspect.signature(method).parameters
    assert list(parameters) == ["self", "a", "b", "c"]
    assert parameters["a"].default is LEFT_OUT
    assert parameters["c"].default is None
    with pytest.raises(TypeError, match="missing"):
        await method(object())


async def test_arguments_whose_names_python_does_not_allow_get_others():
    properties = {"from": {"type": "string"}, "max-size": {}, "max_size": {}, "self": {}}
    method = method_of(
        ToolSpec(name="f", description="", parameters={"properties": properties}), call
    )
    assert list(inspect.signature(method).parameters) == [
        *("self", "from_", "max_size", "max_size_", "self_")
    ]
    sent = await method(object(), from_="a", max_size=1, max_size_=2, self_=3)
    assert sent == {"from": "a", "max-size": 1, "max_size": 2, "self": 3}
    assert describe(method, source="x", skips_self=True).schema["function"]["description"] == "F."


def test_pydantic_schemas_are_understood():
    definitions = {"Mode": {"enum": ["fast", "slow"], "type": "string", "title": "Mode"}}
    schema = {
        "properties": {
            "mode": {"$ref": "#/$defs/Mode"},
            "both": {"allOf": [{"$ref": "#/$defs/Mode"}], "default": "fast"},
            "n": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
            "low": {"type": "integer", "minimum": 1, "maximum": 20, "title": "Low"},
        },
        "required": ["mode", "low"],
        "$defs": definitions,
    }
    spec = ToolSpec(name="go", description="Go.\n\nArgs:\n    n: How far.", parameters=schema)
    told = describe(method_of(spec, call), source="x", skips_self=True).schema["function"]
    assert told["description"] == "Go."
    assert told["parameters"]["properties"] == {
        "mode": {"type": "string", "enum": ["fast", "slow"], "description": "Mode"},
        "both": {"type": "string", "enum": ["fast", "slow"], "description": "Mode"},
        "n": {"type": "integer", "nullable": True, "description": "How far."},
        "low": {"type": "integer", "description": "Low (at least 1, at most 20)."},
    }
    assert told["parameters"]["required"] == ["mode", "low"]


def test_a_reference_to_itself_ends():
    loop = {"A": {"$ref": "#/$defs/A"}}
    assert hint_of({"$ref": "#/$defs/A"}, loop) is Any


@given(st.text(max_size=80))
def test_any_description_makes_a_docstring_that_can_be_read(description: str):
    text = ToolText(description=description.strip() or "It acts.", arguments={"n": "How often."})
    read = read_docstring(docstring(text))
    assert read.arguments == {"n": "How often."}


@pytest.mark.parametrize(
    ("name", "python"),
    [("get-weather", "get_weather"), ("2nd", "tool_2nd"), ("class", "class_"), ("é/ü", "é_ü")],
)
def test_names_become_names_of_methods(name: str, python: str):
    assert python_name(name) == python
    assert python_name(name, taken=[python]) != python


def test_a_method_is_asynchronous_where_its_call_is():
    spec = ToolSpec(name="add", description="Add.", parameters={"properties": {"from": {}}})
    method = method_of(spec, lambda self, arguments: (self, arguments))
    assert method(7, 3) == (7, {"from": 3})
    assert not inspect.iscoroutinefunction(method)
