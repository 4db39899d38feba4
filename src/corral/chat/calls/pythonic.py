"""``<|tool_call_start|>[tool(name="value")]<|tool_call_end|>``: LFM2.

Asked for JSON in the system prompt, its models write a list of objects instead.
"""

import ast
import re
import warnings
from typing import Any, Final, cast

from corral.chat.calls.json_call import calls_of
from corral.chat.calls.syntax import CallError, CallSyntax, Types, through_close, unique
from corral.chat.calls.values import check_value, decode_json
from corral.records import ToolCall

_CLOSES: Final = "<|tool_call_end|>"
_OPENS: Final = re.compile(re.escape("<|tool_call_start|>"))
_JSON: Final = re.compile(r"\s*(?=\[\s*\{)")
_WORDS: Final = {"true": True, "false": False, "null": None}

_TEXT: Final = re.compile(r"""[(,]\s*+[^\W\d]\w*+\s*+=\s*+(?=['"])""")
_QUOTES: Final = {quote: re.compile(rf"(?s)\\.|{quote}") for quote in "'\""}
_AFTER_TEXT: Final = re.compile(
    r"\s*+(?:,\s*+[^\W\d]\w*+\s*+=|\)\s*+(?:\]?\s*+\Z|,\s*+[^\W\d][\w.]*+\())"
)
"""Another argument, the end, or another call."""


def _read(text: str, position: int, types: Types) -> tuple[list[ToolCall], int]:
    as_json = _JSON.match(text, position)
    if as_json is not None:
        value, end = decode_json(text, as_json.end())
        return calls_of(value), through_close(text, end, _OPENS, _CLOSES)
    end = text.find(_CLOSES, position)
    stop = len(text) if end < 0 else end
    return python_calls(text[position:stop]), stop if end < 0 else end + len(_CLOSES)


def python_calls(source: str) -> list[ToolCall]:
    """The calls that a list in Python is; nothing in it is evaluated."""
    return [_call_of(node) for node in _elements(source.strip())]


def _elements(source: str) -> list[ast.expr]:
    try:
        body = _parsed(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        said = getattr(error, "msg", None) or error
        raise CallError(f"The tool calls are not a Python list of calls: {said}.") from None
    if not isinstance(body, ast.List) or not body.elts:
        raise CallError("The tool calls are not a Python list of calls.")
    return body.elts


def _parsed(source: str) -> ast.expr:
    # LFM2.5's template writes the lines of a text as they are, and quotes in it, too.
    lines = source.replace("\r", "\\r").replace("\n", "\\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an unknown escape in a string is no news here
        for spelled in (source, lines):
            try:
                return ast.parse(spelled, mode="eval").body
            except SyntaxError:
                continue
        return ast.parse(_with_quotes_escaped(lines), mode="eval").body


def _with_quotes_escaped(source: str) -> str:
    """The calls with a backslash before each quote that does not end its text.

    A text ends at the first of its quotes after which a call can go on.
    """
    pieces: list[str] = []
    position = 0
    while (opened := _TEXT.search(source, position)) is not None:
        begin = opened.end() + 1
        pieces.append(source[position:begin])
        position = begin
        for found in _QUOTES[source[begin - 1]].finditer(source, begin):
            if len(found[0]) > 1:
                continue  # escaped already
            if _AFTER_TEXT.match(source, found.end()):
                break
            pieces.append(source[position : found.start()] + "\\")
            position = found.start()
        else:
            break  # a text without an end: no Python either
        pieces.append(source[position : found.end()])
        position = found.end()
    return "".join([*pieces, source[position:]])


def _call_of(node: ast.expr) -> ToolCall:
    if not isinstance(node, ast.Call):
        raise CallError("The list of tool calls has something else in it.")
    if node.args or any(keyword.arg is None for keyword in node.keywords):
        raise CallError("The arguments of a tool call must be given by name.")
    pairs = [(str(keyword.arg), _value_of(keyword.value)) for keyword in node.keywords]
    return ToolCall(name=_name_of(node.func), arguments=unique(pairs))


def _name_of(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        raise CallError("The tool call has no name.")
    return ".".join([node.id, *reversed(parts)])


def _value_of(node: ast.expr) -> Any:
    for each in ast.walk(node):
        if isinstance(each, ast.Dict):
            unique([(str(key.value), None) for key in each.keys if isinstance(key, ast.Constant)])
    try:
        value = ast.literal_eval(_Words().visit(node))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise CallError("The arguments of a tool call must be literal values.") from None
    check_value(value)
    _check_json(value)
    return value


class _Words(ast.NodeTransformer):
    """JSON's words among Python's."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(_WORDS[node.id]) if node.id in _WORDS else node


def _check_json(value: Any) -> None:
    """Only what JSON has, too: no sets, bytes, complex numbers."""
    if isinstance(value, dict):
        fields = cast("dict[object, Any]", value)
        if not all(isinstance(key, str) for key in fields):
            raise CallError("The keys of a mapping must be strings.")
        for each in fields.values():
            _check_json(each)
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            _check_json(each)
    elif not isinstance(value, str | int | float | bool | None):
        raise CallError(f"A {type(value).__name__} cannot be an argument.")


PYTHONIC = CallSyntax(
    name="pythonic",
    opens=_OPENS,
    closes=_CLOSES,
    read=_read,
    example='<|tool_call_start|>[tool(name="value")]<|tool_call_end|>',
)
