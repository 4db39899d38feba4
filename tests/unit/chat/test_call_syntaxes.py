"""Each way to write calls: what it says, what is wrong with it, and that nothing escapes."""

import random
from typing import Any

import pytest

from corral.chat.calls import SYNTAXES
from corral.chat.reading import MAX_CALLS, parse_turn
from corral.records import MalformedCall, ToolCall

TYPES = {"act": {"text": {"type": "string"}, "n": {"type": "integer"}, "on": {"type": "boolean"}}}
BY_NAME = {syntax.name: syntax for syntax in SYNTAXES}

GOOD: list[tuple[str, str, dict[str, Any]]] = [
    ("hermes", '<tool_call>{"name": "act", "arguments": {"text": "5", "n": 5}}</tool_call>', {}),
    (
        "function xml",
        "<tool_call>\n<function=act>\n<parameter=text>\n5\n</parameter>\n<parameter=n>\n5\n"
        "</parameter>\n</function>\n</tool_call>",
        {},
    ),
    (
        "glm",
        "<tool_call>act\n<arg_key>text</arg_key>\n<arg_value>5</arg_value>\n<arg_key>n</arg_key>"
        "\n<arg_value>5</arg_value>\n</tool_call>",
        {},
    ),
    ("pythonic", "<|tool_call_start|>[act(text='5', n=5)]<|tool_call_end|>", {}),
    ("gemma", '<|tool_call>call:act{n:5,text:<|"|>5<|"|>}<tool_call|>', {}),
    (
        "atem",
        ' to=act<|message|><atem:function_calls>\n<atem:invoke name="act">\n'
        '<atem:parameter name="text">5</atem:parameter>\n<atem:parameter name="n">5'
        "</atem:parameter>\n</atem:invoke>\n</atem:function_calls>",
        {},
    ),
    ("llama", '{"name": "act", "parameters": {"text": "5", "n": 5}}', {}),
    (
        "harmony",
        ' to=functions.act<|channel|>commentary json<|message|>{"text": "5", "n": 5}<|call|>',
        {},
    ),
    (
        "deepseek",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>act\n```json\n"
        '{"text": "5", "n": 5}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        {},
    ),
    ("mistral", '[TOOL_CALLS][{"name": "act", "arguments": {"text": "5", "n": 5}}]', {}),
    (
        "cohere",
        '<|START_ACTION|>[{"tool_name": "act", "parameters": {"text": "5", "n": 5}}]<|END_ACTION|>',
        {},
    ),
    (
        "phi",
        '<|tool_call|>[{"name": "act", "arguments": {"text": "5", "n": 5}}]<|/tool_call|>',
        {},
    ),
]


@pytest.mark.parametrize(("name", "text", "_"), GOOD, ids=[case[0] for case in GOOD])
def test_a_call_is_read_with_the_types_of_its_tool(name: str, text: str, _: Any) -> None:
    turn = parse_turn(text, syntax=BY_NAME[name], types=TYPES)
    assert turn.calls == (ToolCall(name="act", arguments={"text": "5", "n": 5}),)
    assert turn.content == ""


@pytest.mark.parametrize(("name", "text", "_"), GOOD, ids=[case[0] for case in GOOD])
@pytest.mark.report("P072")
def test_a_truncated_turn_executes_nothing(name: str, text: str, _: Any) -> None:
    for end in range(1, len(text) + 1):
        turn = parse_turn(text[:end], syntax=BY_NAME[name], types=TYPES, is_truncated=True)
        assert all(isinstance(call, MalformedCall) for call in turn.calls)


@pytest.mark.parametrize(("name", "text", "_"), GOOD, ids=[case[0] for case in GOOD])
@pytest.mark.report("P071")
def test_whatever_is_written_is_read_without_an_exception(name: str, text: str, _: Any) -> None:
    chance = random.Random(name)
    pieces = [*text, text[: len(text) // 2], text, "<", '"', "{", "[", "\\", "é", "\ud83d", "\0"]
    for _ in range(1000):
        letters = list(text)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(letters) + 1)
            letters[at : at + chance.randrange(3)] = chance.choice(pieces)
        turn = parse_turn("".join(letters), syntax=BY_NAME[name], types=TYPES)
        assert all(isinstance(call, ToolCall | MalformedCall) for call in turn.calls)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hermes", '<tool_call>{"name": "act", "name": "act"}</tool_call>'),
        ("function xml", "<tool_call><function=act><parameter=n>\n1\n</parameter></tool_call>"),
        (
            "function xml",
            "<tool_call><function=act><parameter=n>1</parameter><parameter=n>2</parameter>"
            "</function></tool_call>",
        ),
        ("glm", "<tool_call>act<arg_key>n</arg_key><arg_value>1</tool_call>"),
        ("glm", "<tool_call>act<arg_key>n</arg_key><arg_value>1</arg_value>"),
        ("glm", "<tool_call>act"),
        ("pythonic", "<|tool_call_start|>[act(1)]<|tool_call_end|>"),
        ("pythonic", "<|tool_call_start|>[act(n=1e999)]<|tool_call_end|>"),
        ("pythonic", "<|tool_call_start|>[act(n=[{'a': 1, 'a': 2}])]<|tool_call_end|>"),
        ("pythonic", f"<|tool_call_start|>[act(n=0x{'f' * 5000})]<|tool_call_end|>"),
        ("pythonic", "<|tool_call_start|>[act(n=open('x'))]<|tool_call_end|>"),
        ("pythonic", "<|tool_call_start|>[act(n={1, 2})]<|tool_call_end|>"),
        ("pythonic", f"<|tool_call_start|>[act(n={'[' * 150}{']' * 150})]<|tool_call_end|>"),
        ("gemma", "<|tool_call>call:act{n:five}<tool_call|>"),
        ("gemma", f"<|tool_call>call:act{{n:{'[' * 5000}<tool_call|>"),
        ("atem", '<atem:function_calls><atem:invoke name="act"></atem:function_calls>'),
        ("llama", '{"name": "act", "parameters": {"n": 1}'),
        ("llama", '{"name": "act", "parameters": {"n": 1}} and more'),
    ],
)
def test_what_is_no_call_is_told_with_an_example(name: str, text: str) -> None:
    (call,) = parse_turn(text, syntax=BY_NAME[name], types=TYPES).calls
    assert isinstance(call, MalformedCall)
    assert BY_NAME[name].example in call.error


def test_python_words_and_json_values_follow_the_schema() -> None:
    text = (
        "<tool_call><function=act><parameter=on>\nTrue\n</parameter><parameter=n>\n[1]\n"
        "</parameter><parameter=text>\n two\nlines \n</parameter></function></tool_call>"
    )
    (call,) = parse_turn(text, syntax=BY_NAME["function xml"], types=TYPES).calls
    assert isinstance(call, ToolCall)
    assert call.arguments == {"on": True, "n": [1], "text": " two\nlines "}


def test_llama_text_that_only_mentions_json_is_text() -> None:
    text = 'I would write {"name": "act"}.'
    turn = parse_turn(text, syntax=BY_NAME["llama"])
    assert (turn.calls, turn.content) == ((), text)


def test_a_list_of_calls_has_a_limit() -> None:
    calls = ", ".join(["act(n=1)"] * (MAX_CALLS + 1))
    turn = parse_turn(f"<|tool_call_start|>[{calls}]<|tool_call_end|>", syntax=BY_NAME["pythonic"])
    assert all(isinstance(call, MalformedCall) for call in turn.calls)


def test_reasoning_and_headers_of_other_families() -> None:
    gemma = parse_turn("<|channel>thought\nHm.\n<channel|>Yes.", syntax=BY_NAME["gemma"])
    assert (gemma.reasoning, gemma.content) == ("Hm.", "Yes.")
    muse = parse_turn(
        " to=self<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>Yes.",
        syntax=BY_NAME["atem"],
    )
    assert (muse.reasoning, muse.content) == ("Hm.", "Yes.")


def test_what_a_model_writes_between_two_calls_is_no_text() -> None:
    call = GOOD[5][1].strip()
    turn = parse_turn(f" {call}<|eom|><|start|>assistant {call}", syntax=BY_NAME["atem"])
    assert (len(turn.calls), turn.content) == (2, "")


def test_forms_that_models_write_beside_those_of_their_templates() -> None:
    phi = parse_turn('functools[{"name": "act", "arguments": {"n": 5}}]', syntax=BY_NAME["phi"])
    mistral = parse_turn('[TOOL_CALLS]act[CALL_ID]a1[ARGS]{"n": 5}', syntax=BY_NAME["mistral"])
    for turn in (phi, mistral):
        assert turn.calls == (ToolCall(name="act", arguments={"n": 5}),)


def test_lines_in_a_pythonic_text_are_read_as_they_are() -> None:
    text = "<|tool_call_start|>[act(text='a\nb',\n  n=5)]<|tool_call_end|>"
    (broken,) = parse_turn(text, syntax=BY_NAME["pythonic"]).calls
    assert isinstance(broken, MalformedCall)  # lines between arguments and within one at a time
    text = "<|tool_call_start|>[act(text='a\nb', n=5)]<|tool_call_end|>"
    (call,) = parse_turn(text, syntax=BY_NAME["pythonic"]).calls
    assert call == ToolCall(name="act", arguments={"text": "a\nb", "n": 5})
