"""Reads what a model wrote: reasoning, visible text and tool calls, in order.

Model output is data: nothing a model writes raises here, and a long text takes at most
``MAX_CALLS`` passes.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from corral.chat.calls.hermes import HERMES
from corral.chat.calls.syntax import CallError, CallSyntax, Types
from corral.records import MalformedCall, ParsedTurn, ToolCall

THINK_OPEN, THINK_CLOSE = "<think>", "</think>"

MAX_CALLS = 100
"""Most calls of one turn. Explaining a JSON error counts the lines before it, so that reading any
number of broken calls would take time quadratic in the length of the text."""

_OPENS, _CLOSES = "call opens", "call closes"
_THINK_OPENS, _THINK_CLOSES = "reasoning opens", "reasoning closes"


@dataclass(slots=True)
class _Reading:
    """How far one turn has been read, and what was found."""

    text: str
    syntax: CallSyntax
    types: Types
    tags: list[tuple[int, int, str]]
    """Where each begins and ends, and what it is."""
    position: int = 0
    next_tag: int = 0
    content: list[str] = field(default_factory=list[str])
    reasoning: list[str] = field(default_factory=list[str])
    calls: list[ToolCall | MalformedCall] = field(default_factory=list[ToolCall | MalformedCall])

    def move_to(self, position: int) -> None:
        """Go on at ``position``; a tag before it, such as inside a JSON string, is none."""
        self.position = position
        while self.next_tag < len(self.tags) and self.tags[self.next_tag][0] < position:
            self.next_tag += 1


def parse_turn(
    text: str,
    *,
    syntax: CallSyntax = HERMES,
    types: Types = MappingProxyType({}),
    opens_thinking: bool = False,
    is_truncated: bool = False,
) -> ParsedTurn:
    """Split a turn into reasoning, visible text and calls, in order.

    Args:
        text: The turn without its stop token.
        syntax: How calls are written.
        types: What the tools take, where ``syntax`` does not write it.
        opens_thinking: The prompt ends inside a reasoning block.
        is_truncated: A token limit cut the turn; then no call in it may be executed.
    """
    reading = _Reading(text, syntax, types, _tags(text, syntax))
    if opens_thinking:
        _read_reasoning(reading, start=0)
    while reading.next_tag < len(reading.tags):
        start, end, tag = reading.tags[reading.next_tag]
        reading.next_tag += 1
        if tag == _THINK_OPENS:
            reading.content.append(text[reading.position : start])
            _read_reasoning(reading, start=end)
        elif tag == _OPENS:
            reading.content.append(text[reading.position : start])
            _read_calls(reading, start, end, is_truncated=is_truncated)
        # A closing tag that closes nothing stays ordinary text.
    reading.content.append(text[reading.position :])
    return ParsedTurn(
        content=_visible(reading),
        reasoning="\n".join(reading.reasoning) if reading.reasoning else None,
        calls=tuple(reading.calls),
    )


def types_of(tools: Sequence[dict[str, Any]] | None) -> Types:
    """The parameters' schemas of tools, by the tools' names."""
    types: dict[str, Mapping[str, Any]] = {}
    for tool in tools or ():
        function: dict[str, Any] = tool.get("function", tool)
        parameters: dict[str, Any] = function.get("parameters") or {}
        types[str(function["name"])] = parameters.get("properties") or {}
    return types


def _tags(text: str, syntax: CallSyntax) -> list[tuple[int, int, str]]:
    thinks, thought = syntax.reasoning
    fixed = {thinks: _THINK_OPENS, thought: _THINK_CLOSES, syntax.closes: _CLOSES}
    found = [
        (match.start(), match.end(), fixed[match.group()])
        for match in re.finditer("|".join(map(re.escape, fixed)), text)
    ]
    found += [(match.start(), match.end(), _OPENS) for match in syntax.opens.finditer(text)]
    return sorted(found)


def _visible(reading: _Reading) -> str:
    headers = reading.syntax.headers
    if not reading.reasoning and not reading.calls:
        return headers.sub("", reading.text) if headers else reading.text
    pieces = [(headers.sub("", piece) if headers else piece).strip() for piece in reading.content]
    return "\n".join(piece for piece in pieces if piece)


def _read_reasoning(reading: _Reading, *, start: int) -> None:
    """Read to the end of a reasoning block, or of the text; what stands inside is never a call."""
    for index in range(reading.next_tag, len(reading.tags)):
        end, after, tag = reading.tags[index]
        if tag == _THINK_CLOSES:
            reading.reasoning.append(reading.text[start:end].strip())
            reading.next_tag = index + 1
            reading.position = after
            return
    reading.reasoning.append(reading.text[start:].strip())
    reading.next_tag = len(reading.tags)
    reading.position = len(reading.text)


def _read_calls(reading: _Reading, start: int, opened: int, *, is_truncated: bool) -> None:
    """Read the call, or the list of calls, that opens at ``start``."""
    text = reading.text
    calls: list[ToolCall | MalformedCall]
    try:
        if len(reading.calls) >= MAX_CALLS:
            raise CallError(f"The turn has more than {MAX_CALLS} tool calls; do fewer at a time.")
        found, end = reading.syntax.read(text, opened, reading.types)
        if len(reading.calls) + len(found) > MAX_CALLS:
            raise CallError(f"The turn has more than {MAX_CALLS} tool calls; do fewer at a time.")
        calls = [*found]
    except CallError as error:
        is_last = len(reading.calls) >= MAX_CALLS
        end = len(text) if is_last else _end_of_broken_call(reading)
        hint = f"{error} Write it as {reading.syntax.example}."
        calls = [MalformedCall(text=text[start:end], error=hint)]
    if is_truncated:
        cut = "The turn was cut by the token limit, so its tool calls were not executed."
        calls = [MalformedCall(text=text[start:end].rstrip(), error=cut)]
    reading.calls += calls
    reading.move_to(end)


def _end_of_broken_call(reading: _Reading) -> int:
    """Through the closing tag, or up to the next thing that opens."""
    for index in range(reading.next_tag, len(reading.tags)):
        start, end, tag = reading.tags[index]
        if tag != _THINK_CLOSES:
            return end if tag == _CLOSES else start
    return len(reading.text)
