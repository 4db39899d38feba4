"""Reading what a model wrote: reasoning, visible text, calls, and everything that goes wrong."""

import json

import pytest

from corral.chat import parse_turn
from corral.chat.reading import MAX_CALLS
from corral.records import MalformedCall, ToolCall


def call(name: str = "guess", **arguments: object) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def test_plain_text_is_content_to_the_last_space() -> None:
    turn = parse_turn("  I give up. \n")
    assert (turn.content, turn.reasoning, turn.calls) == ("  I give up. \n", None, ())


def test_reasoning_is_split_from_content() -> None:
    turn = parse_turn("<think>\nhigher than 3\n</think>\n\nIt is 4.")
    assert (turn.content, turn.reasoning) == ("It is 4.", "higher than 3")


def test_reasoning_whose_opening_tag_is_in_the_prompt_is_reasoning() -> None:
    turn = parse_turn("reason</think>answer", opens_thinking=True)
    assert (turn.content, turn.reasoning) == ("answer", "reason")


def test_reasoning_that_never_ends_leaves_no_content_and_no_call() -> None:
    for text, opens in [(f"<think>a {call()}", False), (f"a {call()}", True)]:
        turn = parse_turn(text, opens_thinking=opens)
        assert (turn.content, turn.calls) == ("", ())
        assert turn.reasoning == f"a {call()}"


@pytest.mark.contract(27)
def test_a_call_inside_reasoning_is_not_executed() -> None:
    turn = parse_turn(f"<think>maybe {call(n=1)}</think>{call(n=2)}")
    assert turn.calls == (ToolCall(name="guess", arguments={"n": 2}),)


def test_reasoning_after_text_is_reasoning_too() -> None:
    turn = parse_turn(f"Hm. <think>{call()}</think> Done.")
    assert (turn.content, turn.reasoning, turn.calls) == ("Hm.\nDone.", call(), ())


@pytest.mark.report("P073")
def test_several_calls_and_the_text_between_them_are_found_in_order() -> None:
    turn = parse_turn(f"First {call(n=1)}\n{call('move', x=2)} then {call()} done")
    assert turn.content == "First\nthen\ndone"
    assert turn.calls == (
        ToolCall(name="guess", arguments={"n": 1}),
        ToolCall(name="move", arguments={"x": 2}),
        ToolCall(name="guess", arguments={}),
    )


@pytest.mark.report("P073")
def test_tags_inside_a_string_argument_are_text() -> None:
    text = "a</tool_call><tool_call>{<think>b</think>"
    turn = parse_turn(call(text=text) + call(n=1))
    assert turn.calls == (
        ToolCall(name="guess", arguments={"text": text}),
        ToolCall(name="guess", arguments={"n": 1}),
    )
    assert (turn.content, turn.reasoning) == ("", None)


@pytest.mark.parametrize(
    "arguments", ["", ', "arguments": null', ', "arguments": {}', ', "arguments": ""']
)
def test_a_call_without_arguments_has_empty_ones(arguments: str) -> None:
    turn = parse_turn(f'<tool_call>{{"name": "look"{arguments}}}</tool_call>')
    assert turn.calls == (ToolCall(name="look", arguments={}),)


def test_arguments_may_be_a_json_string_of_a_mapping() -> None:
    text = json.dumps({"name": "guess", "arguments": json.dumps({"word": 'a"b'})})
    turn = parse_turn(f"<tool_call>\n{text}\n</tool_call>")
    assert turn.calls == (ToolCall(name="guess", arguments={"word": 'a"b'}),)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ('{"name": "guess", "arguments": {"a": "unterminated', "not valid JSON"),
        ('{"name": "guess", "arguments": {"a": 1},}', "not valid JSON"),
        ("{'name': 'guess', 'arguments': {}}", "not valid JSON"),
        ("", "not valid JSON"),
        ('{"name": "guess", "arguments": {"a": NaN}}', "NaN"),
        ('{"name": "guess", "arguments": {"a": -Infinity}}', "-Infinity"),
        ('{"name": "guess", "arguments": {"a": 1e999}}', "too large"),
        ('{"name": "guess", "arguments": {"a": ' + "9" * 5000 + "}}", "not usable JSON"),
        ('{"name": "guess", "name": "move"}', "'name' more than once"),
        ('{"name": "guess", "arguments": {"a": "\\ud800"}}', "surrogate"),
        ('{"name": 7, "arguments": {}}', '"name"'),
        ('{"name": "", "arguments": {}}', '"name"'),
        ('{"arguments": {}}', '"name"'),
        ("[1]", "not a JSON object"),
        ('{"name": "guess", "arguments": [1]}', '"arguments"'),
        ('{"name": "guess", "arguments": "[1]"}', '"arguments"'),
        ('{"name": "guess", "arguments": "{} {}"}', '"arguments"'),
        ('{"name": "guess", "arguments": {}}}', "text after"),
        ('{"name": "guess", "arguments": ' + '{"a":' * 70 + "1" + "}" * 71, "levels deep"),
    ],
)
@pytest.mark.contract(26)
@pytest.mark.report("P071")
def test_a_broken_call_is_malformed_and_says_why(body: str, why: str) -> None:
    text = f"<tool_call>{body}</tool_call>"
    turn = parse_turn(f"Now {text} ok")
    (broken,) = turn.calls
    assert isinstance(broken, MalformedCall)
    assert broken.text == text
    assert why in broken.error
    assert broken.error.endswith("</tool_call>.")
    assert turn.content == "Now\nok"


@pytest.mark.contract(27)
@pytest.mark.report("P071", "P073")
def test_a_broken_call_does_not_take_its_neighbours_with_it() -> None:
    turn = parse_turn(f"<tool_call>{{oops</tool_call>{call(n=1)}<tool_call>oops{call(n=2)}")
    kinds = [type(found) for found in turn.calls]
    assert kinds == [MalformedCall, ToolCall, MalformedCall, ToolCall]


@pytest.mark.contract(27)
def test_a_whole_call_whose_closing_tag_is_missing_is_accepted() -> None:
    unclosed = call(n=1).removesuffix("</tool_call>")
    turn = parse_turn(unclosed + "\n" + call(n=2).removesuffix("</tool_call>"))
    assert [found.arguments for found in turn.calls if isinstance(found, ToolCall)] == [
        {"n": 1},
        {"n": 2},
    ]


@pytest.mark.contract(27)
@pytest.mark.report("P072")
def test_no_call_of_a_truncated_turn_can_be_executed() -> None:
    whole = "Text " + call(n=1) + call(path="a", content="rm -rf /tmp/x")
    for cut in range(len(whole) + 1):
        turn = parse_turn(whole[:cut], is_truncated=True)
        assert not [found for found in turn.calls if isinstance(found, ToolCall)]
    assert len(parse_turn(whole, is_truncated=True).calls) == 2
    assert "token limit" in parse_turn(whole, is_truncated=True).calls[0].error  # type: ignore[union-attr]


def test_the_calls_of_a_turn_are_bounded() -> None:
    turn = parse_turn(call() * (MAX_CALLS + 50))
    assert len(turn.calls) == MAX_CALLS + 1
    assert all(isinstance(found, ToolCall) for found in turn.calls[:-1])
    last = turn.calls[-1]
    assert isinstance(last, MalformedCall)
    assert str(MAX_CALLS) in last.error
    assert last.text == call() * 50


def test_a_closing_tag_that_closes_nothing_is_text() -> None:
    assert parse_turn("a</tool_call>b</think>c").content == "a</tool_call>b</think>c"


def test_a_malformed_call_stays_in_the_message() -> None:
    message = parse_turn(f"Hm <tool_call>{{oops</tool_call>{call(n=1)}").as_message()
    assert message["content"] == "Hm\n<tool_call>{oops</tool_call>"
    assert [part["function"]["name"] for part in message["tool_calls"]] == ["guess"]
