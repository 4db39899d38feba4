"""``<|tool_call_start|>[tool(name="value")]<|tool_call_end|>``: LFM2."""

import ast
import re
import warnings
from typing import Any, Final, cast

from corral.chat.calls.syntax import CallError, CallSyntax, Types, unique
from corral.chat.calls.values import check_value
from corral.records import ToolCall

_CLOSES: Final = "<|tool_call_end|>"
_OPENS: Final = re.compile(re.escape("<|tool_call_start|>"))
_WORDS: Final = {"true": True, "false": False, "null": None}


def _read(text: str, position: int, types: Types) -> tuple[list[ToolCall], int]:
    end = text.find(_CLOSES, position)
    stop = len(text) if end < 0 else end
    calls = [_call_of(node) for node in _elements(text[position:stop].strip())]
    return calls, stop if end < 0 else end + len(_CLOSES)


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an unknown escape in a string is no news here
        try:
            return ast.parse(source, mode="eval").body
        except SyntaxError:
            # LFM2.5's template writes the lines of a text as they are.
            lines = source.replace("\r", "\\r").replace("\n", "\\n")
            return ast.parse(lines, mode="eval").body


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
