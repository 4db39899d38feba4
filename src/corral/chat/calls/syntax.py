"""What there is to know about one way to write tool calls."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from corral.records import ToolCall, strict_json

Types = Mapping[str, Mapping[str, Any]]
"""The parameters' JSON schemas of each tool, by name: where a call is not JSON, a value's type is
not written in it."""

Read = Callable[[str, int, Types], tuple[list[ToolCall], int]]
"""Reads what follows the opening at a position: the calls, and where they end.

Raises `CallError`; nothing else, whatever the text.
"""


class CallError(ValueError):
    """Why a text is no call, in words for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSyntax:
    """One way to write calls."""

    name: str
    opens: re.Pattern[str]
    """What begins a call, or a list of calls."""
    closes: str
    """What ends it."""
    read: Read
    example: str
    """Shown to a model that got it wrong."""
    reasoning: tuple[str, str] = ("<think>", "</think>")
    """What encloses reasoning in the models that write calls so."""
    headers: re.Pattern[str] | None = None
    """What such a model writes before its visible text and is no part of it."""


def after_space(text: str, position: int) -> int:
    """The first position from ``position`` on that is no white space."""
    match = _SPACE.match(text, position)
    return match.end() if match else position


def through_close(text: str, position: int, syntax_opens: re.Pattern[str], closes: str) -> int:
    """Where a call ends whose own text ends at ``position``.

    What closes it may be missing when the turn ends or the next call follows: the call is whole.
    """
    end = after_space(text, position)
    if text.startswith(closes, end):
        return end + len(closes)
    if end == len(text) or syntax_opens.match(text, end):
        return end
    raise CallError(f"The tool call has text after its end: {text[end : end + 20]!r}.")


def refusal(what: str) -> CallError:
    """The error for something that stands in a call and must not."""
    return CallError(f"The tool call has {what}.")


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs as a mapping; a key that comes twice is an error."""
    return strict_json.unique(pairs, refusal)


_SPACE = re.compile(r"[ \t\r\n]*")
