"""Megabytes of what a broken model may write are read in seconds."""

import time

import pytest

from corral.chat.calls import SYNTAXES, CallSyntax
from corral.chat.reading import MAX_CALLS, parse_turn
from corral.records import MalformedCall, ToolCall


@pytest.mark.parametrize("syntax", SYNTAXES, ids=lambda syntax: syntax.name)
@pytest.mark.report("P071")
def test_megabytes_of_half_written_calls_are_read_quickly(syntax: CallSyntax) -> None:
    half = syntax.example[: len(syntax.example) // 2]
    start = time.process_time()
    for piece in (syntax.example, half, half[:12], "to=", "Action:", syntax.closes):
        turn = parse_turn(piece * (300_000 // len(piece)), syntax=syntax)
        assert len(turn.calls) <= MAX_CALLS + 1
    assert time.process_time() - start < 20


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>" + "[" * 2_000_000,
        "<tool_call>" + '{"a":' * 400_000,
        "<tool_call>" * 100_000,
        "<tool_call>[" * 60_000,
        '<tool_call>{"name":"' * 100_000,
        "<tool_call>x<think></think>" * 30_000,
        "<tool_call>x</think>" * 100_000,
        "<think>" * 80_000,
        "<think></think>" * 40_000,
        '<tool_call>{"name":"a","arguments":{'
        + ",".join(f'"{index}":0' for index in range(50_000))
        + ',"0":1}}</tool_call>',
        '<tool_call>{"name":"a","arguments":"' + "[" * 2_000_000 + '"}</tool_call>',
        "<tool_call>" + " " * 2_000_000,
    ],
    ids=lambda text: text[:24],
)
@pytest.mark.report("P071")
def test_megabytes_of_nonsense_are_read_quickly(text: str) -> None:
    start = time.perf_counter()
    turn = parse_turn(text)
    assert time.perf_counter() - start < 5
    assert not [found for found in turn.calls if isinstance(found, ToolCall)]
    assert all(len(found.error) < 300 for found in turn.calls if isinstance(found, MalformedCall))
