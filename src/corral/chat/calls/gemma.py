"""``<|tool_call>call:NAME{key:<|"|>text<|"|>,other:1}<tool_call|>``: Gemma 4.

FunctionGemma writes the same with other markers.
"""

import re
from dataclasses import dataclass
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

_NAME: Final = re.compile(r"\s*call:([\w.-]+)")
_KEY: Final = re.compile(r"[^:{}\[\],<>]+")
_BARE: Final = re.compile(r"[^,\[\]{}<>\s]+")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads calls with these markers."""

    opens: re.Pattern[str]
    closes: str
    quote: str

    def read(self, text: str, position: int, types: Types) -> tuple[list[ToolCall], int]:
        found = _NAME.match(text, position)
        if found is None:
            raise CallError("The tool call does not begin with call:NAME.")
        arguments, end = self._mapping(text, found.end(), 0)
        check_value(arguments)
        end = through_close(text, end, self.opens, self.closes)
        return [ToolCall(name=found[1], arguments=arguments)], end

    def _value(self, text: str, position: int, depth: int) -> tuple[Any, int]:
        if depth > MAX_DEPTH:
            raise CallError(f"The tool call is nested more than {MAX_DEPTH} levels deep.")
        if text.startswith(self.quote, position):
            return self._quoted(text, position)
        if text.startswith("{", position):
            return self._mapping(text, position, depth)
        if text.startswith("[", position):
            return self._list(text, position, depth)
        found = _BARE.match(text, position)
        if found is None:
            raise CallError(f"The tool call has no value at {text[position : position + 20]!r}.")
        if found[0] == "None":  # as Gemma 4's first templates write null
            return None, found.end()
        value, end = decode_json(found[0], 0)
        if end != len(found[0]):
            raise CallError(
                f"The tool call has the value {found[0]!r:.40}, which needs {self.quote}."
            )
        return value, found.end()

    def _quoted(self, text: str, position: int) -> tuple[str, int]:
        start = position + len(self.quote)
        end = text.find(self.quote, start)
        if end < 0:
            raise CallError(f"A text in the tool call has no {self.quote} at its end.")
        return text[start:end], end + len(self.quote)

    def _mapping(self, text: str, position: int, depth: int) -> tuple[dict[str, Any], int]:
        pairs: list[tuple[str, Any]] = []
        end = _opened(text, position, "{")
        while not text.startswith("}", end):
            if text.startswith(self.quote, end):
                key, end = self._quoted(text, end)
            else:
                found = _KEY.match(text, end)
                if found is None:
                    raise CallError(f"The tool call has no key at {text[end : end + 20]!r}.")
                key, end = found[0].strip(), found.end()
            end = _opened(text, end, ":")
            value, end = self._value(text, end, depth + 1)
            pairs.append((key, value))
            end = _after_element(text, end, "}")
        return unique(pairs), end + 1

    def _list(self, text: str, position: int, depth: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        end = _opened(text, position, "[")
        while not text.startswith("]", end):
            value, end = self._value(text, end, depth + 1)
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


def _syntax(
    name: str, opens: str, closes: str, quote: str, reasoning: tuple[str, str]
) -> CallSyntax:
    pattern = re.compile(re.escape(opens))
    return CallSyntax(
        name=name,
        opens=pattern,
        closes=closes,
        read=_Reader(pattern, closes, quote).read,
        example=f"{opens}call:tool{{name:{quote}value{quote}}}{closes}",
        reasoning=reasoning,
    )


GEMMA = _syntax(
    "gemma", "<|tool_call>", "<tool_call|>", '<|"|>', ("<|channel>thought\n", "<channel|>")
)
FUNCTION_GEMMA = _syntax(
    "function gemma",
    "<start_function_call>",
    "<end_function_call>",
    "<escape>",
    ("<think>", "</think>"),
)
