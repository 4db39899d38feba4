"""A whole turn that is ``{"name": ..., "parameters": {...}}``: Llama 3.1 and later.

Llama 4 writes several one after the other, behind ``<|python_end|>``. Llama 3 has built-in tools,
called as ``<|python_tag|>tool.call(key="value")``, and its small models also write whole turns of
``[tool(key="value")]``.
"""

import re
from typing import Final

from corral.chat.calls.json_call import call_of
from corral.chat.calls.pythonic import python_calls
from corral.chat.calls.syntax import CallError, CallSyntax, Types, after_space
from corral.chat.calls.values import decode_json
from corral.records import ToolCall

_CLOSES: Final = "<|eom_id|>"
_OPENS: Final = re.compile(
    r"<\|python_tag\|>|<\|python_end\|>(?=\s*\{)"
    r'|\A\s*(?=\{\s*"(?:type|name)"\s*:)'
    r"|\A\s*(?=(?s:\[\s*[^\W\d][\w.]*\(.*\)\s*\]\s*\Z))"
)


def _read(text: str, position: int, types: Types) -> tuple[list[ToolCall], int]:
    end = after_space(text, position)
    if not text.startswith("{", end):
        return _python(text[end:]), len(text)
    calls: list[ToolCall] = []
    while True:
        value, end = decode_json(text, end)
        calls.append(call_of(value, arguments=("parameters", "arguments")))
        end = after_space(text, end)
        if end == len(text):
            return calls, end
        if text.startswith(_CLOSES, end):
            return calls, end + len(_CLOSES)
        if text.startswith(";", end):
            end = after_space(text, end + 1)
        if not text.startswith("{", end):
            raise CallError(f"The tool call has text after its end: {text[end : end + 20]!r}.")


def _python(source: str) -> list[ToolCall]:
    source = source.strip().removesuffix(_CLOSES).strip()
    is_builtin = not source.startswith("[")
    calls = python_calls(f"[{source}]" if is_builtin else source)
    return [
        ToolCall(name=call.name.removesuffix(".call"), arguments=call.arguments)
        if is_builtin
        else call
        for call in calls
    ]


LLAMA = CallSyntax(
    name="llama",
    opens=_OPENS,
    closes=_CLOSES,
    read=_read,
    example='{"name": "tool", "parameters": {...}}',
    headers=re.compile(r"<\|python_(?:start|end)\|>"),
)
