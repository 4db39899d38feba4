"""``<|START_ACTION|>[{"tool_name": ..., "parameters": {...}}]<|END_ACTION|>``: Command R7B and A.

Command R and R+ write the list after ``Action:``, as a fenced block.
"""

import re
from typing import Final

from corral.chat.calls.json_call import calls_of
from corral.chat.calls.syntax import CallSyntax, Types, after_space, through_close
from corral.chat.calls.values import decode_json
from corral.records import ToolCall

_FENCE: Final = "```"
_CLOSES: Final = "<|END_ACTION|>"
_OPENS: Final = re.compile(r"<\|START_ACTION\|>|Action:\s*```json\s")


def _read(text: str, position: int, types: Types) -> tuple[list[ToolCall], int]:
    value, end = decode_json(text, after_space(text, position))
    end = after_space(text, end)
    is_fenced = text.startswith(_FENCE, end)
    end = through_close(text, end, _OPENS, _FENCE if is_fenced else _CLOSES)
    return calls_of(value, name="tool_name", arguments=("parameters",)), end


COHERE = CallSyntax(
    name="cohere",
    opens=_OPENS,
    closes=_CLOSES,
    read=_read,
    example='<|START_ACTION|>[{"tool_name": "tool", "parameters": {...}}]<|END_ACTION|>',
    reasoning=("<|START_THINKING|>", "<|END_THINKING|>"),
    headers=re.compile(r"<\|(?:START|END)_RESPONSE\|>"),
)
