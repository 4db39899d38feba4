"""Values in calls: JSON, and text whose type only the tool's schema tells."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, cast

from corral.chat.calls.syntax import CallError, Types, refusal
from corral.records.strict_json import strict_decoder

MAX_DEPTH = 64
"""Deepest nesting of a value; deeper ones break code that walks them by recursion."""

MAX_BITS = 14_000
"""Longest integer: Python refuses to write those of more than 4300 digits."""

_SURROGATE = re.compile("[\\ud800-\\udfff]")
_PYTHONS = {"True": True, "False": False, "None": None}


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

    Text is text where the schema wants a string; else JSON or one of Python's words if it is
    that, and text again if it is not: the call layer then tells the model what was expected.
    """
    check_value(text)
    if _is_text(types.get(name, {}).get(key)):
        return text
    word = text.strip()
    if word in _PYTHONS:
        return _PYTHONS[word]
    try:
        value, end = decode_json(word, 0)
    except CallError:
        return text
    return value if end == len(word) else text


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


def _is_text(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    fields = cast("Mapping[str, Any]", schema)
    if "anyOf" in fields:
        variants = [each for each in fields["anyOf"] if each.get("type") != "null"]
        return bool(variants) and all(_is_text(each) for each in variants)
    return fields.get("type") == "string" or (
        "enum" in fields and all(isinstance(value, str) for value in fields["enum"])
    )


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        mapping = cast("dict[object, object]", value)
        return [*mapping.keys(), *mapping.values()]
    return cast("list[object]", value) if isinstance(value, list) else []


_DECODER = strict_decoder(refusal)
