"""Whatever a model writes is read without an exception, and nothing cut is executed."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from corral.chat import parse_turn
from corral.records import ToolCall

PIECES = [
    "<tool_call>", "</tool_call>", "<think>", "</think>", "{", "}", "[", "]", '"', "'", "\\", ",",
    ":", "\n", " ", '"name"', '"arguments"', '{"name": "a"}', "NaN", "1e999", "\\ud800", "é", "\0",
    "null", "0", "🙂",
]  # fmt: skip
SOUP = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=40).map("".join)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
CALLS = st.lists(st.tuples(TEXT, st.dictionaries(TEXT, JSON, max_size=3)), max_size=4)


def written(calls: list[tuple[str, dict[str, Any]]], ensure_ascii: bool) -> str:
    return "\n".join(
        "<tool_call>"
        + json.dumps({"name": name, "arguments": arguments}, ensure_ascii=ensure_ascii)
        + "</tool_call>"
        for name, arguments in calls
    )


@given(text=SOUP, opens=st.booleans(), cut=st.booleans())
def test_nothing_a_model_writes_raises(text: str, opens: bool, cut: bool) -> None:
    turn = parse_turn(text, opens_thinking=opens, is_truncated=cut)
    json.dumps(turn.as_message(), ensure_ascii=False, allow_nan=False)
    if cut:
        assert not [call for call in turn.calls if isinstance(call, ToolCall)]


@settings(max_examples=40)
@given(calls=CALLS, ensure_ascii=st.booleans())
def test_well_formed_calls_are_read_as_written(
    calls: list[tuple[str, dict[str, Any]]], ensure_ascii: bool
) -> None:
    turn = parse_turn(written(calls, ensure_ascii))
    assert turn.calls == tuple(ToolCall(name=name, arguments=given) for name, given in calls)


@settings(max_examples=40)
@given(calls=CALLS.filter(bool), share=st.floats(0, 1, exclude_max=True))
def test_a_call_cut_anywhere_is_never_a_call_with_other_arguments(
    calls: list[tuple[str, dict[str, Any]]], share: float
) -> None:
    text = written(calls, ensure_ascii=True)
    found = parse_turn(text[: int(len(text) * share)]).calls
    good = [(call.name, call.arguments) for call in found if isinstance(call, ToolCall)]
    assert good == calls[: len(good)]
