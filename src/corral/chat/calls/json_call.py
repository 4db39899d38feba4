"""A call as a JSON object, as several ways to write calls have it."""

from collections.abc import Sequence
from typing import Any, cast

from corral.chat.calls.syntax import CallError
from corral.chat.calls.values import decode_json
from corral.records import ToolCall


def call_of(value: object, *, arguments: Sequence[str] = ("arguments",)) -> ToolCall:
    """The call that an object is.

    Args:
        arguments: The keys its arguments may have.
    """
    if not isinstance(value, dict):
        raise CallError("The tool call is not a JSON object.")
    fields = cast("dict[str, Any]", value)
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise CallError('The tool call has no "name", or one that is not a string.')
    key = next((key for key in arguments if key in fields), arguments[0])
    return ToolCall(name=name, arguments=arguments_of(fields.get(key), key))


def arguments_of(value: object, key: str = "arguments") -> dict[str, Any]:
    """Arguments as a mapping; JSON text of a mapping is one, too."""
    if value is None:
        return {}
    if isinstance(value, str):
        text = value.strip(" \t\r\n")
        if not text:
            return {}
        value, end = decode_json(text, 0)
        if end != len(text):
            raise CallError(f'The "{key}" string has text after its JSON object.')
    if not isinstance(value, dict):
        raise CallError(f'The "{key}" of the tool call are not a JSON object.')
    return cast("dict[str, Any]", value)
