"""``<tool_call><function=NAME><parameter=KEY>…``: Qwen3-Coder, Qwen3.5 and later, Nemotron 3."""

import re
from typing import Final

from corral.chat.calls.syntax import (
    CallError,
    CallSyntax,
    Types,
    after_space,
    through_close,
    unique,
)
from corral.chat.calls.values import typed_value
from corral.records import ToolCall

_CLOSES: Final = "</tool_call>"
_OPENS: Final = re.compile("<tool_call>")
_FUNCTION: Final = re.compile(r"<function=([^<>\n]+)>\s*")
_PARAMETER: Final = re.compile(r"<parameter=([^<>\n]+)>\n?")
_END_OF_FUNCTION: Final = "</function>"
# A text may hold the tag itself: it ends a value where the call can go on after it.
_END_OF_VALUE: Final = re.compile(r"</parameter>(?=\s*+(?:<parameter=|</function>))")


def _read(text: str, position: int, types: Types) -> tuple[list[ToolCall], int]:
    found = _FUNCTION.match(text, after_space(text, position))
    if found is None:
        raise CallError("The tool call does not begin with <function=NAME>.")
    name, end = found[1].strip(), found.end()
    pairs: list[tuple[str, object]] = []
    while (parameter := _PARAMETER.match(text, end)) is not None:
        key = parameter[1].strip()
        stop = _END_OF_VALUE.search(text, parameter.end())
        if stop is None:
            raise CallError(f"The parameter {key!r:.80} has no </parameter> that ends it.")
        value = text[parameter.end() : stop.start()].removesuffix("\n")
        pairs.append((key, typed_value(value, name, key, types)))
        end = after_space(text, stop.end())
    if not text.startswith(_END_OF_FUNCTION, end):
        raise CallError(f"The tool call has no {_END_OF_FUNCTION} where its parameters end.")
    end = through_close(text, end + len(_END_OF_FUNCTION), _OPENS, _CLOSES)
    return [ToolCall(name=name, arguments=unique(pairs))], end


FUNCTION_XML = CallSyntax(
    name="function xml",
    opens=_OPENS,
    closes=_CLOSES,
    read=_read,
    example="<tool_call>\n<function=tool>\n<parameter=name>\nvalue\n</parameter>\n</function>\n"
    "</tool_call>",
)
