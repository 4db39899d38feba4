"""``<atem:invoke name="tool"><atem:parameter name="key">…``: Muse Glimmer."""

import re
from typing import Final

from corral.chat.calls.syntax import CallError, CallSyntax, Types, after_space, unique
from corral.chat.calls.values import typed_value
from corral.records import ToolCall

_CLOSES: Final = "</atem:function_calls>"
_OPENS: Final = re.compile(r"(?:\s?to=[^\s<]{1,256}<\|message\|>)?<atem:function_calls>")
_INVOKE: Final = re.compile(r'<atem:invoke name="([^"<>]+)">\s*')
_PARAMETER: Final = re.compile(r'<atem:parameter name="([^"<>]+)"[^<>]*>')
# A text may hold the tag itself: it ends a value where the call can go on after it.
_END_OF_VALUE: Final = re.compile(
    r"</atem:parameter>(?=\s*+(?:<atem:parameter name=|</atem:invoke>))"
)
_END_OF_INVOKE: Final = "</atem:invoke>"


def _read(text: str, position: int, types: Types) -> tuple[list[ToolCall], int]:
    calls: list[ToolCall] = []
    end = after_space(text, position)
    while (invoke := _INVOKE.match(text, end)) is not None:
        name, end = invoke[1], invoke.end()
        pairs: list[tuple[str, object]] = []
        while (parameter := _PARAMETER.match(text, end)) is not None:
            stop = _END_OF_VALUE.search(text, parameter.end())
            if stop is None:
                raise CallError(
                    f"The parameter {parameter[1]!r:.80} has no </atem:parameter> that ends it."
                )
            value = typed_value(text[parameter.end() : stop.start()], name, parameter[1], types)
            pairs.append((parameter[1], value))
            end = after_space(text, stop.end())
        if not text.startswith(_END_OF_INVOKE, end):
            raise CallError(f"The tool call has no {_END_OF_INVOKE} where its parameters end.")
        end = after_space(text, end + len(_END_OF_INVOKE))
        calls.append(ToolCall(name=name, arguments=unique(pairs)))
    if not calls or not text.startswith(_CLOSES, end):
        raise CallError(f"The tool calls are not a list of invocations that ends in {_CLOSES}.")
    return calls, end + len(_CLOSES)


ATEM = CallSyntax(
    name="atem",
    opens=_OPENS,
    closes=_CLOSES,
    read=_read,
    example='<atem:function_calls>\n<atem:invoke name="tool">\n<atem:parameter name="name">value'
    "</atem:parameter>\n</atem:invoke>\n</atem:function_calls>",
    reasoning=(" to=self<|message|>", "<|eom|><|start|>assistant"),
    headers=re.compile(r"(?:\A|<\|eom\|><\|start\|>assistant)(?:\s*to=user<\|message\|>)?"),
)
