"""``<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>``: gpt-oss.

A turn is one or more messages, each with a channel: ``analysis`` is reasoning, ``final`` is what
the user reads, and a call goes to a recipient, named before the channel or after it.
"""

import re
from typing import Final

from corral.chat.calls.json_call import arguments_of
from corral.chat.calls.syntax import CallError, CallSyntax, Types, after_space, through_close
from corral.chat.calls.values import decode_json
from corral.records import ToolCall

_CLOSES: Final = "<|call|>"
_OPENS: Final = re.compile(
    r"\s?(?:<\|channel\|>(?:commentary|analysis)\s+)?"
    r"to=(?=[^\s<=]{1,200}+\s*+(?:\w{1,40}+\s*+)?<\|(?:channel|constrain|message)\|>)"
)
# Possessive: two runs of white space side by side would be tried in every split of a long one.
_RECIPIENT: Final = re.compile(
    r"(?:functions\.)?([^\s<]++)\s*+(?:<\|channel\|>(?:commentary|analysis)\s*+)?"
    r"(?:<\|constrain\|>\s*+)?(?:\w++\s*+)?<\|message\|>"
)


def _read(text: str, position: int, types: Types) -> tuple[list[ToolCall], int]:
    found = _RECIPIENT.match(text, position)
    if found is None:
        raise CallError("The tool call does not begin with to=functions.NAME and <|message|>.")
    value, end = decode_json(text, after_space(text, found.end()))
    end = through_close(text, end, _OPENS, _CLOSES)
    return [ToolCall(name=found[1], arguments=arguments_of(value))], end


HARMONY = CallSyntax(
    name="harmony",
    opens=_OPENS,
    closes=_CLOSES,
    read=_read,
    example="<|channel|>commentary to=functions.tool <|constrain|>json<|message|>{...}<|call|>",
    reasoning=("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
    headers=re.compile(
        r"<\|end\|>(?:<\|start\|>assistant)?|(?:<\|channel\|>(?:final|commentary)\s*)<\|message\|>"
    ),
)
