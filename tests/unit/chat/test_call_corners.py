"""Corners of single ways to write calls: types, quotes, closing tags, less usual forms."""

import json
import time
from typing import Any

import pytest

from corral.chat.calls import SYNTAXES
from corral.chat.reading import parse_turn
from corral.records import MalformedCall, ToolCall

BY_NAME = {syntax.name: syntax for syntax in SYNTAXES}
OPENS, CLOSES = "<|tool_call_start|>[", "]<|tool_call_end|>"
TEXT_OR_NULL = {"type": "string", "nullable": True}
INTEGER_OR_TEXT = {"type": ["integer", "string"]}


def calls_in(name: str, text: str, **schemas: Any) -> list[Any]:
    turn = parse_turn(text, syntax=BY_NAME[name], types={"act": schemas})
    return [getattr(call, "arguments", call) for call in turn.calls]


def valued(name: str, value: str) -> str:
    return {
        "function xml": f"<tool_call>\n<function=act>\n<parameter=v>\n{value}\n</parameter>\n"
        "</function>\n</tool_call>",
        "glm": f"<tool_call>act\n<arg_key>v</arg_key>\n<arg_value>{value}</arg_value>\n"
        "</tool_call>",
        "atem": '<atem:function_calls>\n<atem:invoke name="act">\n<atem:parameter name="v">'
        f"{value}</atem:parameter>\n</atem:invoke>\n</atem:function_calls>",
    }[name]


@pytest.mark.parametrize("name", ["function xml", "glm", "atem"])
@pytest.mark.parametrize(
    ("schema", "written", "read"),
    [
        ({"type": "string"}, "5", "5"),
        ({"type": "string"}, "null", "null"),
        ({"type": "integer"}, "5", 5),
        ({"type": "integer"}, "five", "five"),
        ({"type": "number"}, "5", 5),
        ({"type": "boolean"}, "False", False),
        (TEXT_OR_NULL, "null", None),
        (TEXT_OR_NULL, "None", None),
        (TEXT_OR_NULL, "5", "5"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "null", None),
        ({"type": ["string", "null"]}, "true", "true"),
        (INTEGER_OR_TEXT, "5", 5),
        (INTEGER_OR_TEXT, "5.0", "5.0"),
        (INTEGER_OR_TEXT, "true", "true"),
        (INTEGER_OR_TEXT, "[5]", "[5]"),
        (INTEGER_OR_TEXT, '"5"', '"5"'),
        ({"oneOf": [{"type": "string"}, {"type": "array"}]}, "[5]", [5]),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"enum": ["auto", 1]}, "1", 1),
        ({"type": "object"}, '{"a": [1, null]}', {"a": [1, None]}),
        ({}, "5", 5),
        ({}, "five", "five"),
    ],
)
def test_a_bare_value_is_what_the_schema_lets_it_be(
    name: str, schema: Any, written: str, read: Any
) -> None:
    (found,) = calls_in(name, valued(name, written), v=schema)
    assert json.dumps(found) == json.dumps({"v": read})


@pytest.mark.parametrize(
    "schema", [True, None, "string", {"anyOf": [True]}, {"anyOf": 5}, {"type": 7}, {"enum": 5}]
)
def test_a_schema_that_is_none_is_no_reason_to_fail(schema: Any) -> None:
    assert calls_in("glm", valued("glm", "5"), v=schema) == [{"v": 5}]


@pytest.mark.parametrize("name", ["function xml", "glm", "atem"])
def test_a_text_may_hold_the_tag_that_ends_it(name: str) -> None:
    tag = {"function xml": "</parameter>", "glm": "</arg_value>", "atem": "</atem:parameter>"}[name]
    for value in (f"a{tag}b", f"{tag}{tag}", f"a\n{tag}\nb {tag}"):
        assert calls_in(name, valued(name, value), v={"type": "string"}) == [{"v": value}]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("v='it's', n=5", {"v": "it's", "n": 5}),
        ("v='it's'", {"v": "it's"}),
        ("""v="say "hi" to", w='x'""", {"v": 'say "hi" to', "w": "x"}),
        ("v=''', w='x'", {"v": "'", "w": "x"}),
        ("v='it's\ntwo lines'", {"v": "it's\ntwo lines"}),
        (r"v='it\'s 'quoted'', l=['a', 1]", {"v": "it's 'quoted'", "l": ["a", 1]}),
        ("v='f('x') is', n=5", {"v": "f('x') is", "n": 5}),
    ],
)
def test_quotes_in_a_pythonic_text_need_no_backslash(written: str, read: Any) -> None:
    """The first templates of LFM2.5 write them without."""
    assert calls_in("pythonic", f"{OPENS}act({written}){CLOSES}") == [read]


@pytest.mark.parametrize(
    "written",
    ["act(v='it's'", "act(v='it's, n=5)", "act(v='a'b, n=5)", "act(v='he said 'x', y=3 is')"],
)
def test_a_pythonic_text_that_ends_nowhere_is_no_call(written: str) -> None:
    (call,) = calls_in("pythonic", f"{OPENS}{written}{CLOSES}")
    assert isinstance(call, MalformedCall)


def test_two_pythonic_calls_with_quotes_stay_two() -> None:
    text = f"{OPENS}act(v='it's'), act(v='say 'hi', all'){CLOSES}"
    assert calls_in("pythonic", text) == [{"v": "it's"}, {"v": "say 'hi', all"}]


def test_lfm2_may_have_been_asked_for_json() -> None:
    text = '<|tool_call_start|>[{"name": "act", "arguments": {"v": "it\'s"}}]<|tool_call_end|>Done.'
    turn = parse_turn(text, syntax=BY_NAME["pythonic"])
    assert (turn.calls, turn.content) == (
        (ToolCall(name="act", arguments={"v": "it's"}),),
        "Done.",
    )


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('<|python_tag|>{"name": "act", "parameters": {"n": 5}}<|eom_id|>', [{"n": 5}]),
        ('<|python_tag|>act.call(query="it\'s")', [{"query": "it's"}]),
        ("[act(n=5), act()]", [{"n": 5}, {}]),
        ('{"name": "act", "parameters": {}}; {"name": "act", "parameters": {}}', [{}, {}]),
        ('{"name": "act", "parameters": {}}{"name": "act", "parameters": {}}', [{}, {}]),
        ('<|python_start|>Hm.<|python_end|>{"name": "act", "parameters": {}}', [{}]),
        ("[act(n=5)] is what I would call.", []),
        ("[1, 2]", []),
    ],
)
def test_forms_of_llama(text: str, read: list[Any]) -> None:
    assert calls_in("llama", text) == read


def test_llama_4_says_something_between_its_python_tags() -> None:
    text = '<|python_start|>Hm.<|python_end|>{"name": "act", "parameters": {}}'
    assert parse_turn(text, syntax=BY_NAME["llama"]).content == "Hm."


def test_gemma_4_writes_null_as_python_does() -> None:
    text = "<|tool_call>call:act{v:None,l:[None,null]}<tool_call|>"
    assert calls_in("gemma", text) == [{"v": None, "l": [None, None]}]


@pytest.mark.parametrize(
    "text",
    [
        " to=functions.act<|channel|>commentary" + " " * 3000,
        "<|channel|>commentary to=functions.act <|constrain|>" + "\n" * 3000,
    ],
)
def test_a_model_that_repeats_white_space_is_read_at_once(text: str) -> None:
    """Two runs of white space side by side in a pattern: reading these took hours."""
    started = time.process_time()
    (call,) = calls_in("harmony", text)
    assert isinstance(call, MalformedCall)
    assert time.process_time() - started < 2


WHOLE = [
    *[(name, valued(name, "55")) for name in ("function xml", "glm", "atem")],
    ("hermes", '<tool_call>{"name": "act", "arguments": {"v": 55}}</tool_call>'),
    ("pythonic", f"{OPENS}act(v=55, w='it's'){CLOSES}"),
    ("gemma", '<|tool_call>call:act{v:55,w:<|"|>x<|"|>}<tool_call|>'),
    ("function gemma", "<start_function_call>call:act{v:55}<end_function_call>"),
    ("harmony", '<|channel|>commentary to=functions.act json<|message|>{"v": 55}<|call|>'),
    (
        "deepseek",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>act<｜tool▁sep｜>{"v": 55}<｜tool▁call▁end｜>'
        "<｜tool▁calls▁end｜>",
    ),
    ("mistral", '[TOOL_CALLS]act[ARGS]{"v": 55}'),
    ("mistral", '[TOOL_CALLS][{"name": "act", "arguments": {"v": 55}}]'),
    ("cohere", '<|START_ACTION|>[{"tool_name": "act", "parameters": {"v": 55}}]<|END_ACTION|>'),
    ("cohere", 'Action: ```json\n[{"tool_name": "act", "parameters": {"v": 55}}]\n```'),
    ("phi", 'functools[{"name": "act", "arguments": {"v": 55}}]'),
    ("llama", '<|python_tag|>{"name": "act", "parameters": {"v": 55}}'),
    ("llama", "[act(v=55)]"),
]


@pytest.mark.parametrize(("name", "text"), WHOLE)
def test_a_turn_that_stops_in_a_call_never_calls_with_other_arguments(name: str, text: str) -> None:
    (whole,) = calls_in(name, text, v={"type": "integer"})
    assert whole["v"] == 55
    for end in range(len(text)):
        for call in calls_in(name, text[:end], v={"type": "integer"}):
            assert isinstance(call, MalformedCall) or call == whole, text[:end]
