"""``<tool_call>NAME<arg_key>…</arg_key><arg_value>…</arg_value></tool_call>``: GLM-4.5 on."""

import re
from typing import Final

from corral.chat.calls.syntax import (
    CallError,
    CallSyntax,
    Types,
    after_space,
    unique,
)
from corral.chat.calls.values import typed_value
from corral.records import ToolCall

_CLOSES: Final = "</tool_call>"
_OPENS: Final = re.compile("<tool_call>")
_NAME: Final = re.compile(r"\s*([\w.-]+)\s*")
_ARGUMENT: Final = re.compile(r"<arg_key>([^<>]*)</arg_key>\s*<arg_value>")
# A text may hold the tag itself: it ends a value where the call can go on after it.
_END_OF_VALUE: Final = re.compile(r"</arg_value>(?=\s*+(?:<arg_key>|</tool_call>))")


def _read(text: str, position: int, types: Types) -> tuple[list[ToolCall], int]:
    found = _NAME.match(text, position)
    if found is None:
        raise CallError("The tool call does not begin with the tool's name.")
    name, end = found[1], found.end()
    pairs: list[tuple[str, object]] = []
    while (argument := _ARGUMENT.match(text, end)) is not None:
        key = argument[1].strip()
        stop = _END_OF_VALUE.search(text, argument.end())
        if stop is None:
            raise CallError(f"The argument {key!r:.80} has no </arg_value> that ends it.")
        pairs.append((key, typed_value(text[argument.end() : stop.start()], name, key, types)))
        end = after_space(text, stop.end())
    # Without what closes it nobody knows whether another argument was to follow.
    if not text.startswith(_CLOSES, end):
        raise CallError(f"The tool call has no {_CLOSES} where its arguments end.")
    return [ToolCall(name=name, arguments=unique(pairs))], end + len(_CLOSES)


GLM = CallSyntax(
    name="glm",
    opens=_OPENS,
    closes=_CLOSES,
    read=_read,
    example="<tool_call>tool\n<arg_key>name</arg_key>\n<arg_value>value</arg_value>\n</tool_call>",
)
