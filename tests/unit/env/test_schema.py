"""Functions become the schemas that chat models are trained on."""

import json
import typing
from collections.abc import Callable
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import pytest

from corral.env import function_schema
from corral.env.json_types import in_words, json_schema
from corral.errors import ToolDefinitionError


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


def compiled(source: str) -> Callable[..., Any]:
    names: dict[str, Any] = {"Literal": typing.Literal, "Optional": typing.Optional}
    before = set(names)
    exec(source, names)
    (function,) = (names[name] for name in set(names) - before - {"__builtins__"})
    return function


def documented(docstring: str, hint: Any = str) -> Callable[..., Any]:
    def tool(x):
        pass

    tool.__doc__ = docstring
    tool.__annotations__ = {"x": hint}
    return tool


def described(docstring: str) -> str:
    return parameters(documented(docstring))["x"]["description"]


def parameters(function: Callable[..., Any]) -> dict[str, Any]:
    return function_schema(function)["function"]["parameters"]["properties"]


@pytest.mark.contract(15)
def test_every_reference_schema_is_equal_in_content_and_order(test_data: Path):
    cases = json.loads((test_data / "golden" / "tool_schemas.json").read_text())["cases"]
    assert cases
    for case in cases:
        schema = function_schema(compiled(case["source"]))
        assert json.dumps(schema) == json.dumps(case["schema"]), case["name"]


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (Literal["a", 1], {"type": ["string", "integer"], "enum": ["a", 1]}),
        (Literal[1, 2] | None, {"type": "integer", "enum": [1, 2], "nullable": True}),
        (Literal["a", None], {"type": ["string", "null"], "enum": ["a", None]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (Level, {"type": "integer", "enum": [1, 2]}),
        (list, {"type": "array"}),
        (list[Any], {"type": "array", "items": {}}),
        (tuple, {"type": "array"}),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
        ),
        (dict, {"type": "object"}),
        (dict[str, Any], {"type": "object", "additionalProperties": {}}),
        (Any, {}),
        (None, {"type": "null"}),
        (Optional[Any], {"nullable": True}),  # noqa: UP045 - the old spelling must work
        (str | int, {"type": ["integer", "string"]}),
        (
            list[int] | str,
            {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}]},
        ),
        (
            Colour | int,
            {"anyOf": [{"type": "string", "enum": ["red", "blue"]}, {"type": "integer"}]},
        ),
        (Annotated[int, "metadata"], {"type": "integer"}),
        (list[int | None], {"type": "array", "items": {"type": "integer", "nullable": True}}),
    ],
)
@pytest.mark.contract(15)
@pytest.mark.report("P076")
def test_types_become_json_schema(hint: Any, schema: dict[str, Any]):
    assert json_schema(hint) == schema


@pytest.mark.parametrize(
    "hint", [set[int], bytes, object, tuple[int, ...], tuple[int], list[bytes], Path, Literal[b"a"]]
)
@pytest.mark.contract(15)
def test_a_type_without_counterpart_is_refused_with_a_line_to_write(hint: Any):
    with pytest.raises(ToolDefinitionError, match=r"tool: parameter 'x' has the type .* x: str"):
        function_schema(documented("Do.\n\nArgs:\n    x: The x.", hint))


@pytest.mark.parametrize(
    "docstring",
    [
        "Do.\n\nArgs:\n    x: The x: with a colon.",
        "Do.\nArgs:\n  x (str): The x: with\n     a colon.\nReturns:\n  it",
        "Do.\n\nArguments:\n    x (`str`, *optional*): The x: with\n        a colon.\n    y: Y.",
        "Do.\n\nArgs:\nx: The x: with a colon.",
        "Do.\n\nArgs:\n    x: The x: with\n\n        a colon.\n\nExample:\n    x: not this",
        "Do.\n\nArgs:\n    x: The x: with a colon.\n\nWords after the section.",
        "Do.\n\n:param x: The x: with\n    a colon.\n:returns: it",
        "Do.\n\n:param str x: The x: with a colon.\n:type x: str",
        "Do.\n\nParameters\n----------\nx : str\n    The x: with\n    a colon.\n\nNotes\n-----\nx",
        "Do.\n\nParameters\n----------\nx, y\n    The x: with a colon.",
    ],
)
@pytest.mark.report("P076")
def test_argument_descriptions_are_found_in_the_usual_styles(docstring: str):
    assert described(docstring) == "The x: with a colon."
    assert function_schema(documented(docstring))["function"]["description"] == "Do."


def test_sections_before_the_arguments_stay_in_the_description():
    schema = function_schema(documented("Do.\n\nExample:\n    do(1)\n\nArgs:\n    x: The x."))
    assert schema["function"]["description"] == "Do.\n\nExample:\n    do(1)"


@pytest.mark.parametrize("section", [":returns: The sum.", "Returns\n-------\nint\n    The sum."])
def test_return_descriptions_are_found_in_other_styles(section: str):
    lead = ":param x: The x.\n" if ":" in section else "Parameters\n----------\nx\n    The x.\n\n"
    function = documented(f"Do.\n\n{lead}{section}")
    function.__annotations__["return"] = int
    assert function_schema(function)["function"]["return"] == {
        "type": "integer",
        "description": "The sum.",
    }


def test_a_return_hint_without_counterpart_is_ignored():
    function = documented("Do.\n\nArgs:\n    x: The x.\n\nReturns:\n    Bytes.")
    function.__annotations__["return"] = "Missing"
    assert "return" not in function_schema(function)["function"]


def test_string_annotations_work_and_may_name_what_encloses_the_function():
    hidden = Literal["a", "b"]

    def tool(x: "hidden", y: "int | None" = None):
        """Do.

        Args:
            x: The x.
            y: The y.
        """
        return hidden

    assert parameters(tool)["x"]["enum"] == ["a", "b"]
    assert parameters(tool)["y"] == {"type": "integer", "nullable": True, "description": "The y."}


def bare(x: int):
    pass


def untyped(x=3):
    """Do.

    Args:
        x: The x.
    """


def undescribed(x: int):
    """Do."""


def empty_description(x: int):
    """Do.

    Args:
        x:
    """


def only_arguments(x: int):
    """
    Args:
        x: The x.
    """


def starred(*words: str):
    """Do.

    Args:
        words: The words.
    """


def double_starred(**options: str):
    """Do.

    Args:
        options: The options.
    """


def positional_only(x: int, /):
    """Do.

    Args:
        x: The x.
    """


def unresolved(x: "Missing"):  # noqa: F821
    """Do.

    Args:
        x: The x.
    """


def bad_choices(x: str):
    """Do.

    Args:
        x: The x (choices: ['a', 'b'])
    """


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (bare, r'bare has no docstring.*""".*x: What x is'),
        (untyped, r"untyped: parameter 'x' has no type hint.*x: int = 3"),
        (undescribed, r"undescribed: parameter 'x' has no description.*x: What x is"),
        (empty_description, r"empty_description: parameter 'x' has no description"),
        (only_arguments, r"only_arguments has a docstring that does not say.*Begin it"),
        (starred, r"starred: parameter '\*words'.*words: list\[str\]"),
        (double_starred, r"double_starred: parameter '\*\*options'.*options: dict"),
        (positional_only, r"positional_only: parameter 'x' is positional-only.*Remove the '/'"),
        (unresolved, r"unresolved: the type hint 'Missing' of parameter 'x'.*x: str"),
        (bad_choices, r"bad_choices: parameter 'x' has choices.*choices: \[\"a\", \"b\"\]"),
    ],
)
@pytest.mark.contract(15)
@pytest.mark.report("P076")
def test_what_a_model_could_not_use_is_refused_with_the_remedy(
    function: Callable[..., Any], message: str
):
    with pytest.raises(ToolDefinitionError, match=message) as caught:
        function_schema(function)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (int | None, "an integer or null"),
        (Literal["a", "b"], "one of 'a', 'b'"),
        (list[int] | str, "a list or a string"),
        (Any, "any value"),
    ],
)
def test_schemas_can_be_said_in_words(hint: Any, words: str):
    assert in_words(json_schema(hint)) == words
