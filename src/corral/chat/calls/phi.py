"""``<|tool_call|>[{"name": ..., "arguments": {...}}]<|/tool_call|>``: Phi-4-mini.

It also writes ``functools[…]``, without tokens of its own.
"""

import re
from typing import Final

from corral.chat.calls.json_call import calls_of
from corral.chat.calls.syntax import CallSyntax, Types, after_space, through_close
from corral.chat.calls.values import decode_json
from corral.records import ToolCall

_CLOSES: Final = "<|/tool_call|>"
_OPENS: Final = re.compile(r"<\|tool_call\|>|functools(?=\[)")


def _read(text: str, position: int, types: Types) -> tuple[list[ToolCall], int]:
    value, end = decode_json(text, after_space(text, position))
    return calls_of(value), through_close(text, end, _OPENS, _CLOSES)


PHI = CallSyntax(
    name="phi",
    opens=_OPENS,
    closes=_CLOSES,
    read=_read,
    example='<|tool_call|>[{"name": "tool", "arguments": {...}}]<|/tool_call|>',
)
