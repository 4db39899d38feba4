"""``[TOOL_CALLS][{"name": ..., "arguments": {...}}]`` and ``[TOOL_CALLS]NAME[ARGS]{…}``: Mistral.

Tokenizers up to version 7 have the first, a list; later ones the second, once for each call.
"""

import re
from typing import Final

from corral.chat.calls.json_call import arguments_of, calls_of
from corral.chat.calls.syntax import CallSyntax, Types, after_space, through_close
from corral.chat.calls.values import decode_json
from corral.records import ToolCall

_CLOSES: Final = "</s>"
_OPENS: Final = re.compile(re.escape("[TOOL_CALLS]"))
_NAMED: Final = re.compile(r"\s*([^\s\[\]{}]+)(?:\[CALL_ID\][^\[\]]*)?\[ARGS\]\s*")


def _read(text: str, position: int, types: Types) -> tuple[list[ToolCall], int]:
    named = _NAMED.match(text, position)
    value, end = decode_json(text, named.end() if named else after_space(text, position))
    end = through_close(text, end, _OPENS, _CLOSES)
    if named:
        return [ToolCall(name=named[1], arguments=arguments_of(value))], end
    return calls_of(value), end


MISTRAL = CallSyntax(
    name="mistral",
    opens=_OPENS,
    closes=_CLOSES,
    read=_read,
    example='[TOOL_CALLS][{"name": "tool", "arguments": {...}}]',
    reasoning=("[THINK]", "[/THINK]"),
)
