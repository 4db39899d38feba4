"""Whether the calls of a demonstrated turn read back as themselves.

A model learns what the template writes. Where that reads as another call, because a format does not
escape quotes or has no way to say null, the model would learn to call something else.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from corral.chat.calls.syntax import Types
from corral.chat.calls.values import kinds_of
from corral.chat.render import plain_message
from corral.errors import TemplateError
from corral.records import MalformedCall, Message, ParsedTurn, ToolCall


def check_calls_read_back(message: Message, text: str, read: Callable[[Types], ParsedTurn]) -> None:
    """Read a turn that ``text`` shows, and compare its calls with those of the message.

    Args:
        read: Reads the turn with types of arguments; each call is read with those of its own.

    Raises:
        TemplateError: Calls are missing, or read as others.
    """
    given = plain_message(message, arguments_as_text=False).get("tool_calls", [])
    for place, call in enumerate(each["function"] for each in given):
        name, arguments = str(call.get("name", "")), call["arguments"]
        found = read({name: _types(arguments)}).calls
        if len(found) != len(given):
            raise TemplateError(
                f"The chat template writes {len(found)} of the {len(given)} calls of {name!r} in "
                "one message: give each call a message of its own."
            )
        if not _is_same(found[place], name, arguments):
            raise TemplateError(
                f"The chat template writes the call {_shown(name, arguments)} as {text!r:.300}, "
                f"which reads as {_described(found[place])}. A model that learns it calls "
                "something else: change the arguments, or leave the conversation out."
            )


def _types(arguments: Any) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(arguments, Mapping):
        return {}
    fields = cast("Mapping[Any, Any]", arguments)
    return {str(key): {"type": sorted(kinds_of(value))} for key, value in fields.items()}


def _is_same(found: ToolCall | MalformedCall, name: str, arguments: Any) -> bool:
    if isinstance(found, MalformedCall) or found.name != name:
        return False
    return _as_json(found.arguments) == _as_json(arguments)


def _as_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _shown(name: str, arguments: Any) -> str:
    return f"{name}({_as_json(arguments):.200})"


def _described(found: ToolCall | MalformedCall) -> str:
    if isinstance(found, MalformedCall):
        return f"no call ({found.error:.200})"
    return _shown(found.name, found.arguments)
