"""Reads what a model wrote in the Hermes format: reasoning, visible text and tool calls.

A call is ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``. Model output is data:
nothing a model writes raises here, and a long text takes at most ``MAX_CALLS`` passes.
"""

import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, cast

from corral.records import MalformedCall, ParsedTurn, ToolCall

THINK_OPEN, THINK_CLOSE = "<think>", "</think>"
CALL_OPEN, CALL_CLOSE = "<tool_call>", "</tool_call>"
CALL_EXAMPLE = f'{CALL_OPEN}{{"name": "tool", "arguments": {{...}}}}{CALL_CLOSE}'

MAX_DEPTH = 64
"""Deepest nesting of a call's JSON; deeper values break code that walks them by recursion."""

MAX_CALLS = 100
"""Most calls of one turn. Explaining a JSON error counts the lines before it, so that reading any
number of broken calls would take time quadratic in the length of the text."""

_TAG = re.compile("|".join(map(re.escape, (THINK_OPEN, THINK_CLOSE, CALL_OPEN, CALL_CLOSE))))
_SURROGATE = re.compile("[\\ud800-\\udfff]")
_SPACE = re.compile(r"[ \t\r\n]*")


class _CallError(ValueError):
    """Why a text is no call, in words for the model."""


@dataclass(slots=True)
class _Reading:
    """How far one turn has been read, and what was found."""

    text: str
    tags: list[tuple[int, str]]
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
    text: str, *, opens_thinking: bool = False, is_truncated: bool = False
) -> ParsedTurn:
    """Split a turn into reasoning, visible text and calls, in order.

    Args:
        text: The turn without its stop token.
        opens_thinking: The prompt ends inside a reasoning block.
        is_truncated: A token limit cut the turn; then no call in it may be executed.
    """
    reading = _Reading(text, [(match.start(), match.group()) for match in _TAG.finditer(text)])
    if opens_thinking:
        _read_reasoning(reading, start=0)
    while reading.next_tag < len(reading.tags):
        start, tag = reading.tags[reading.next_tag]
        reading.next_tag += 1
        if tag == THINK_OPEN:
            reading.content.append(text[reading.position : start])
            _read_reasoning(reading, start=start + len(tag))
        elif tag == CALL_OPEN:
            reading.content.append(text[reading.position : start])
            _read_call(reading, start=start, is_truncated=is_truncated)
        # A closing tag that closes nothing stays ordinary text.
    reading.content.append(text[reading.position :])
    return ParsedTurn(
        content=_visible(reading),
        reasoning="\n".join(reading.reasoning) if reading.reasoning else None,
        calls=tuple(reading.calls),
    )


def _visible(reading: _Reading) -> str:
    if not reading.reasoning and not reading.calls:
        return reading.text
    pieces = [piece.strip() for piece in reading.content]
    return "\n".join(piece for piece in pieces if piece)


def _read_reasoning(reading: _Reading, *, start: int) -> None:
    """Read to the end of a reasoning block, or of the text; what stands inside is never a call."""
    for index in range(reading.next_tag, len(reading.tags)):
        end, tag = reading.tags[index]
        if tag == THINK_CLOSE:
            reading.reasoning.append(reading.text[start:end].strip())
            reading.next_tag = index + 1
            reading.position = end + len(tag)
            return
    reading.reasoning.append(reading.text[start:].strip())
    reading.next_tag = len(reading.tags)
    reading.position = len(reading.text)


def _read_call(reading: _Reading, *, start: int, is_truncated: bool) -> None:
    """Read one call that opens at ``start``."""
    text = reading.text
    try:
        if len(reading.calls) >= MAX_CALLS:
            raise _CallError(f"The turn has more than {MAX_CALLS} tool calls; do fewer at a time.")
        value, end = _decode_json(text, _after_space(text, start + len(CALL_OPEN)))
        end = _after_call(text, end)
        call = _call_of(value)
    except _CallError as error:
        is_last = len(reading.calls) >= MAX_CALLS
        end = len(text) if is_last else _end_of_broken_call(reading)
        call = MalformedCall(text=text[start:end], error=f"{error} Write it as {CALL_EXAMPLE}.")
    if is_truncated:
        call = MalformedCall(
            text=text[start:end].rstrip(),
            error="The turn was cut by the token limit, so its tool calls were not executed.",
        )
    reading.calls.append(call)
    reading.move_to(end)


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _after_call(text: str, position: int) -> int:
    """Where a call ends whose JSON ends at ``position``.

    The closing tag may be missing when the turn or the next call follows: the JSON is whole.
    """
    end = _after_space(text, position)
    if text.startswith(CALL_CLOSE, end):
        return end + len(CALL_CLOSE)
    if end == len(text) or text.startswith(CALL_OPEN, end):
        return end
    raise _CallError(f"The tool call has text after its JSON object: {text[end : end + 20]!r}.")


def _end_of_broken_call(reading: _Reading) -> int:
    """Through the closing tag, or up to the next thing that opens."""
    for index in range(reading.next_tag, len(reading.tags)):
        position, tag = reading.tags[index]
        if tag != THINK_CLOSE:
            return position + len(tag) if tag == CALL_CLOSE else position
    return len(reading.text)


def _call_of(value: object) -> ToolCall:
    if not isinstance(value, dict):
        raise _CallError("The tool call is not a JSON object.")
    fields = cast("dict[str, Any]", value)
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise _CallError('The tool call has no "name", or one that is not a string.')
    return ToolCall(name=name, arguments=_arguments_of(fields.get("arguments")))


def _arguments_of(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, str):
        text = value.strip(" \t\r\n")
        if not text:
            return {}
        value, end = _decode_json(text, 0)
        if end != len(text):
            raise _CallError('The "arguments" string has text after its JSON object.')
    if not isinstance(value, dict):
        raise _CallError('The "arguments" of the tool call are not a JSON object.')
    return cast("dict[str, Any]", value)


def _decode_json(text: str, position: int) -> tuple[Any, int]:
    """The JSON value that begins at ``position``, and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, position)
    except _CallError:
        raise
    except json.JSONDecodeError as error:
        where = f"{error.msg} at character {error.pos - position}"
        raise _CallError(f"The tool call is not valid JSON: {where}.") from None
    except (ValueError, RecursionError) as error:
        # Integers beyond Python's digit limit, nesting beyond the interpreter's.
        raise _CallError(f"The tool call is not usable JSON: {error}.") from None
    _check_value(value)
    return value, end


def _check_value(value: object) -> None:
    """Refuse what JSON can spell but later code cannot handle."""
    layer: list[object] = [value]
    for _ in range(MAX_DEPTH + 1):
        if not layer:
            return
        if any(isinstance(item, str) and _SURROGATE.search(item) for item in layer):
            raise _CallError("The tool call has half of a surrogate pair in a string.")
        layer = [child for item in layer for child in _children(item)]
    raise _CallError(f"The tool call is nested more than {MAX_DEPTH} levels deep.")


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        mapping = cast("dict[object, object]", value)
        return [*mapping.keys(), *mapping.values()]
    return cast("list[object]", value) if isinstance(value, list) else []


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise _CallError(f"The tool call has the key {twice!r:.80} more than once.")
    return fields


def _refuse_constant(name: str) -> Any:
    raise _CallError(f"The tool call has {name}, which is not a JSON number.")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _CallError(f"The tool call has the number {text:.20}, which is too large.")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_fields, parse_constant=_refuse_constant, parse_float=_finite
)
