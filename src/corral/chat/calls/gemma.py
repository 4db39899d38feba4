"""``<|tool_call>call:NAME{key:<|"|>text<|"|>,other:1}<tool_call|>``: Gemma 4."""

import re
from typing import Any, Final

from corral.chat.calls.syntax import (
    CallError,
    CallSyntax,
    Types,
    after_space,
    through_close,
    unique,
)
from corral.chat.calls.values import MAX_DEPTH, check_value, decode_json
from corral.records import ToolCall

_QUOTE: Final = '<|"|>'
_CLOSES: Final = "<tool_call|>"
_OPENS: Final = re.compile(re.escape("<|tool_call>"))
_NAME: Final = re.compile(r"\s*call:([\w.-]+)")
_KEY: Final = re.compile(r"[^:{}\[\],<>]+")
_BARE: Final = re.compile(r"[^,\[\]{}<>\s]+")


def _read(text: str, position: int, types: Types) -> tuple[list[ToolCall], int]:
    found = _NAME.match(text, position)
    if found is None:
        raise CallError("The tool call does not begin with call:NAME.")
    arguments, end = _mapping(text, found.end(), 0)
    check_value(arguments)
    end = through_close(text, end, _OPENS, _CLOSES)
    return [ToolCall(name=found[1], arguments=arguments)], end


def _value(text: str, position: int, depth: int) -> tuple[Any, int]:
    if depth > MAX_DEPTH:
        raise CallError(f"The tool call is nested more than {MAX_DEPTH} levels deep.")
    if text.startswith(_QUOTE, position):
        return _quoted(text, position)
    if text.startswith("{", position):
        return _mapping(text, position, depth)
    if text.startswith("[", position):
        return _list(text, position, depth)
    found = _BARE.match(text, position)
    if found is None:
        raise CallError(f"The tool call has no value at {text[position : position + 20]!r}.")
    value, end = decode_json(found[0], 0)
    if end != len(found[0]):
        raise CallError(f"The tool call has the value {found[0]!r:.40}, which needs {_QUOTE}.")
    return value, found.end()


def _quoted(text: str, position: int) -> tuple[str, int]:
    start = position + len(_QUOTE)
    end = text.find(_QUOTE, start)
    if end < 0:
        raise CallError(f"A text in the tool call has no {_QUOTE} at its end.")
    return text[start:end], end + len(_QUOTE)


def _mapping(text: str, position: int, depth: int) -> tuple[dict[str, Any], int]:
    pairs: list[tuple[str, Any]] = []
    end = _opened(text, position, "{")
    while not text.startswith("}", end):
        if text.startswith(_QUOTE, end):
            key, end = _quoted(text, end)
        else:
            found = _KEY.match(text, end)
            if found is None:
                raise CallError(f"The tool call has no key at {text[end : end + 20]!r}.")
            key, end = found[0].strip(), found.end()
        end = _opened(text, end, ":")
        value, end = _value(text, end, depth + 1)
        pairs.append((key, value))
        end = _after_element(text, end, "}")
    return unique(pairs), end + 1


def _list(text: str, position: int, depth: int) -> tuple[list[Any], int]:
    values: list[Any] = []
    end = _opened(text, position, "[")
    while not text.startswith("]", end):
        value, end = _value(text, end, depth + 1)
        values.append(value)
        end = _after_element(text, end, "]")
    return values, end + 1


def _opened(text: str, position: int, sign: str) -> int:
    position = after_space(text, position)
    if not text.startswith(sign, position):
        raise CallError(f"The tool call has no {sign!r} at {text[position : position + 20]!r}.")
    return after_space(text, position + 1)


def _after_element(text: str, position: int, closes: str) -> int:
    end = after_space(text, position)
    if text.startswith(",", end):
        return after_space(text, end + 1)
    if not text.startswith(closes, end):
        raise CallError(f"The tool call has no {closes!r} at {text[end : end + 20]!r}.")
    return end


GEMMA = CallSyntax(
    name="gemma",
    opens=_OPENS,
    closes=_CLOSES,
    read=_read,
    example='<|tool_call>call:tool{name:<|"|>value<|"|>}<tool_call|>',
    reasoning=("<|channel>thought\n", "<channel|>"),
)
