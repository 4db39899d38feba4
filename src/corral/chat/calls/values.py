"""Values in calls: JSON, and text whose type only the tool's schema tells."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from corral.chat.calls.syntax import CallError, Types, refusal
from corral.records.strict_json import strict_decoder

MAX_DEPTH = 64
"""Deepest nesting of a value; deeper ones break code that walks them by recursion."""

MAX_BITS = 14_000
"""Longest integer: Python refuses to write those of more than 4300 digits."""

_SURROGATE = re.compile("[\\ud800-\\udfff]")
_PYTHONS = {"True": True, "False": False, "None": None}
_NAMES: Sequence[tuple[type, tuple[str, ...]]] = (
    (bool, ("boolean",)),
    (int, ("integer", "number")),
    (float, ("number",)),
    (str, ("string",)),
    (list, ("array",)),
    (dict, ("object",)),
    (object, ("null",)),
)
"""By Python type, the narrower first."""


def decode_json(text: str, position: int) -> tuple[Any, int]:
    """The JSON value that begins at ``position``, and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, position)
    except CallError:
        raise
    except json.JSONDecodeError as error:
        where = f"{error.msg} at character {error.pos - position}"
        raise CallError(f"The tool call is not valid JSON: {where}.") from None
    except (ValueError, RecursionError) as error:
        # Integers beyond Python's digit limit, nesting beyond the interpreter's.
        raise CallError(f"The tool call is not usable JSON: {error}.") from None
    check_value(value)
    return value, end


def typed_value(text: str, name: str, key: str, types: Types) -> Any:
    """A value written as bare text, as what the tool's schema says it is.

    Text is text where the schema wants a string, and nothing else is read where it also wants
    others: for an integer or a string, ``5`` is a number, ``5.0`` and ``[5]`` are text. Without a
    string in the schema it is JSON or one of Python's words if it is that, and text again if it is
    not: the call layer then tells the model what was expected.
    """
    check_value(text)
    kinds = _kinds(types.get(name, {}).get(key))
    others = kinds - {"string"}
    if not kinds or others == kinds:
        return _json_or_text(text)
    value = _json_or_text(text) if others else text
    return value if kinds_of(value) & others else text


def kinds_of(value: object) -> frozenset[str]:
    """The names that JSON schema has for the type of a value."""
    kind = next(names for kinds, names in _NAMES if isinstance(value, kinds))
    return frozenset(kind)


def check_value(value: object) -> None:
    """Refuse what can be spelled but later code cannot handle."""
    layer: list[object] = [value]
    for _ in range(MAX_DEPTH + 1):
        if not layer:
            return
        for item in layer:
            _check_scalar(item)
        layer = [child for item in layer for child in _children(item)]
    raise CallError(f"The tool call is nested more than {MAX_DEPTH} levels deep.")


def _check_scalar(value: object) -> None:
    if isinstance(value, str) and _SURROGATE.search(value):
        raise CallError("The tool call has half of a surrogate pair in a string.")
    if isinstance(value, float) and not math.isfinite(value):
        raise CallError("The tool call has a number that is too large.")
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise CallError("The tool call has an integer with thousands of digits.")


def _json_or_text(text: str) -> Any:
    word = text.strip()
    if word in _PYTHONS:
        return _PYTHONS[word]
    try:
        value, end = decode_json(word, 0)
    except CallError:
        return text
    return value if end == len(word) else text


def _kinds(schema: Any) -> frozenset[str]:
    """The JSON types that a schema allows; none where it does not say, or not in a known way."""
    if not isinstance(schema, Mapping):
        return frozenset()
    fields = cast("Mapping[str, Any]", schema)
    parts = fields.get("anyOf") or fields.get("oneOf")
    named = fields.get("type")
    kinds = frozenset[str]()
    if isinstance(parts, list):
        found = [_kinds(part) for part in cast("list[Any]", parts)]
        kinds = kinds.union(*found) if all(found) else kinds
    elif isinstance(named, str):
        kinds = frozenset({named})
    elif isinstance(named, list):
        kinds = frozenset(each for each in cast("list[Any]", named) if isinstance(each, str))
    elif isinstance(fields.get("enum"), list):
        kinds = kinds.union(*(kinds_of(each) for each in fields["enum"]))
    return kinds | {"null"} if kinds and fields.get("nullable") is True else kinds


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        mapping = cast("dict[object, object]", value)
        return [*mapping.keys(), *mapping.values()]
    return cast("list[object]", value) if isinstance(value, list) else []


_DECODER = strict_decoder(refusal)
