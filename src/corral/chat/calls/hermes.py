"""``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``: Hermes, Qwen2.5, Qwen3, Corral."""

import re
from typing import Final

from corral.chat.calls.json_call import call_of
from corral.chat.calls.syntax import CallSyntax, Types, after_space, through_close
from corral.chat.calls.values import decode_json
from corral.records import ToolCall

_CLOSES: Final = "</tool_call>"
_OPENS: Final = re.compile("<tool_call>")


def _read(text: str, position: int, types: Types) -> tuple[list[ToolCall], int]:
    value, end = decode_json(text, after_space(text, position))
    end = through_close(text, end, _OPENS, _CLOSES)
    return [call_of(value)], end


HERMES = CallSyntax(
    name="hermes",
    opens=_OPENS,
    closes=_CLOSES,
    read=_read,
    example='<tool_call>{"name": "tool", "arguments": {...}}</tool_call>',
)
