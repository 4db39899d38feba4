"""A call as a JSON object, as several ways to write calls have it."""

from collections.abc import Sequence
from typing import Any, cast

from corral.chat.calls.syntax import CallError
from corral.chat.calls.values import decode_json
from corral.records import ToolCall


def call_of(
    value: object, *, name: str = "name", arguments: Sequence[str] = ("arguments",)
) -> ToolCall:
    """The call that an object is.

    Args:
        name: The key of the tool's name.
        arguments: The keys its arguments may have.
    """
    if not isinstance(value, dict):
        raise CallError("The tool call is not a JSON object.")
    fields = cast("dict[str, Any]", value)
    tool = fields.get(name)
    if not isinstance(tool, str) or not tool:
        raise CallError(f'The tool call has no "{name}", or one that is not a string.')
    key = next((key for key in arguments if key in fields), arguments[0])
    return ToolCall(name=tool, arguments=arguments_of(fields.get(key), key))


def calls_of(
    value: object, *, name: str = "name", arguments: Sequence[str] = ("arguments",)
) -> list[ToolCall]:
    """The calls that a list of objects is."""
    if not isinstance(value, list) or not value:
        raise CallError("The tool calls are not a JSON list of objects.")
    return [call_of(each, name=name, arguments=arguments) for each in cast("list[Any]", value)]


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
