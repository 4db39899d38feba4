"""A whole turn that is ``{"name": ..., "parameters": {...}}``: Llama 3.1 and 3.2."""

import re
from typing import Final

from corral.chat.calls.json_call import call_of
from corral.chat.calls.syntax import CallError, CallSyntax, Types, after_space
from corral.chat.calls.values import decode_json
from corral.records import ToolCall

_TAG: Final = "<|python_tag|>"
_OPENS: Final = re.compile(rf'{re.escape(_TAG)}|\A\s*(?=\{{\s*"(?:type|name)"\s*:)')


def _read(text: str, position: int, types: Types) -> tuple[list[ToolCall], int]:
    calls: list[ToolCall] = []
    end = after_space(text, position)
    while True:
        value, end = decode_json(text, end)
        calls.append(call_of(value, arguments=("parameters", "arguments")))
        end = after_space(text, end)
        if end == len(text):
            return calls, end
        if not text.startswith(";", end):
            raise CallError(f"The tool call has text after its end: {text[end : end + 20]!r}.")
        end = after_space(text, end + 1)


LLAMA = CallSyntax(
    name="llama",
    opens=_OPENS,
    closes="<|eom_id|>",
    read=_read,
    example='{"name": "tool", "parameters": {...}}',
)
