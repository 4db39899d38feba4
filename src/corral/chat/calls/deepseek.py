"""``<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}<｜tool▁call▁end｜>``, in a list: DeepSeek.

V3 and R1 write ``function<｜tool▁sep｜>NAME`` and fence the arguments, V3.1 does neither.
"""

import re
from typing import Final

from corral.chat.calls.json_call import arguments_of
from corral.chat.calls.syntax import CallError, CallSyntax, Types, after_space
from corral.chat.calls.values import decode_json
from corral.records import ToolCall

_SEPARATOR: Final = "<｜tool▁sep｜>"
_CLOSES: Final = "<｜tool▁calls▁end｜>"
_OPENS: Final = re.compile("<｜tool▁calls▁begin｜>")
_CALL: Final = re.compile(r"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?([^\s<{]+)")
_ARGUMENTS: Final = re.compile(rf"(?:{_SEPARATOR})?\s*(```json)?\s*")
_END_OF_CALL: Final = "<｜tool▁call▁end｜>"


def _read(text: str, position: int, types: Types) -> tuple[list[ToolCall], int]:
    calls: list[ToolCall] = []
    end = after_space(text, position)
    while (found := _CALL.match(text, end)) is not None:
        opened = _ARGUMENTS.match(text, found.end())
        assert opened is not None  # all of it is optional
        value, end = decode_json(text, opened.end())
        end = after_space(text, end)
        if opened[1]:
            end = _expect(text, end, "```")
        end = _expect(text, end, _END_OF_CALL)
        calls.append(ToolCall(name=found[1], arguments=arguments_of(value)))
    if not calls:
        raise CallError("The tool calls do not begin with <｜tool▁call▁begin｜> and a name.")
    return calls, end if end == len(text) else _expect(text, end, _CLOSES)


def _expect(text: str, position: int, what: str) -> int:
    if not text.startswith(what, position):
        found = text[position : position + 20]
        raise CallError(f"The tool call has {found!r} where {what} was to come.")
    return after_space(text, position + len(what))


DEEPSEEK = CallSyntax(
    name="deepseek",
    opens=_OPENS,
    closes=_CLOSES,
    read=_read,
    example="<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>tool\n```json\n{...}\n"
    "```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
)
