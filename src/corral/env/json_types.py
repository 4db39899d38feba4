"""Python types as JSON schema, in the form chat models are trained on."""

from collections.abc import Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

_PLAIN: dict[Any, str] = {
    int: "integer",
    float: "number",
    str: "string",
    bool: "boolean",
    NoneType: "null",
}
_WORDS = {
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}

SUPPORTED_TYPES = (
    "int, float, str, bool, list[...], tuple[A, B], dict[str, ...], Literal[...], an Enum, "
    "Optional[...], unions of these, or Any"
)


class UnsupportedTypeError(TypeError):
    """A type has no counterpart in JSON schema; the message names the innermost one."""


def json_schema(hint: Any) -> dict[str, Any]:
    """The JSON schema of a resolved type hint.

    Raises:
        UnsupportedTypeError: The hint, or a part of it, is none of `SUPPORTED_TYPES`.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if hint is None:
        return {"type": "null"}
    if origin is Annotated:
        return json_schema(arguments[0])
    if origin is Literal:
        return _choice_schema(arguments)
    if origin in (Union, UnionType):
        return _union_schema(arguments)
    container: Any = origin or hint
    if container is list:
        return {"type": "array"} | ({"items": json_schema(arguments[0])} if arguments else {})
    if container is tuple:
        return _tuple_schema(hint, arguments)
    if container is dict:
        values = {"additionalProperties": json_schema(arguments[1])} if arguments else {}
        return {"type": "object"} | values
    if isinstance(hint, type):
        if hint in _PLAIN:
            return {"type": _PLAIN[hint]}
        if issubclass(hint, Enum):
            return _choice_schema([member.value for member in hint])
    raise UnsupportedTypeError(type_name(hint))


def type_name(hint: Any) -> str:
    """A hint as its author would write it."""
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def in_words(schema: dict[str, Any]) -> str:
    """What a schema asks for, as words for a model: ``"an integer or null"``."""
    if "enum" in schema:
        text = "one of " + ", ".join(repr(choice) for choice in schema["enum"])
    elif "anyOf" in schema:
        text = " or ".join(in_words(part) for part in schema["anyOf"])
    elif "type" not in schema:
        return "any value"
    else:
        types: Any = schema["type"]
        names: list[str] = [types] if isinstance(types, str) else types
        text = " or ".join(_WORDS[name] for name in names)
    return text + (" or null" if schema.get("nullable") else "")


def _choice_schema(values: Sequence[Any]) -> dict[str, Any]:
    names: list[str] = []
    for value in values:
        if type(value) not in _PLAIN:
            raise UnsupportedTypeError(f"the choice {value!r}")
        name = _PLAIN[type(value)]
        if name not in names:
            names.append(name)
    return {"type": names[0] if len(names) == 1 else names, "enum": list(values)}


def _union_schema(arguments: Sequence[Any]) -> dict[str, Any]:
    parts = [json_schema(part) for part in arguments if part is not NoneType]
    if len(parts) == 1:
        schema = parts[0]
    elif all(list(part) == ["type"] and isinstance(part["type"], str) for part in parts):
        # Sorted, as the models' own training data has it.
        schema: dict[str, Any] = {"type": sorted(part["type"] for part in parts)}
    else:
        schema = {"anyOf": parts}
    return schema | ({"nullable": True} if NoneType in arguments else {})


def _tuple_schema(hint: Any, arguments: Sequence[Any]) -> dict[str, Any]:
    if not arguments:
        return {"type": "array"}
    if len(arguments) == 1 or Ellipsis in arguments:
        raise UnsupportedTypeError(f"{type_name(hint)} (write list[...] for any number of items)")
    return {"type": "array", "prefixItems": [json_schema(part) for part in arguments]}
