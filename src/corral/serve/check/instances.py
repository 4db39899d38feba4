"""Makes instances of a JSON Schema: smallest valid ones, and ones that are surely invalid."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

_FORMATS = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "uri": "http://localhost/",
    "email": "a@example.org",
}
_DEEPEST = 32


class NoInstanceError(ValueError):
    """No instance could be derived; the message names the part of the schema."""


def valid_instance(schema: Mapping[str, Any]) -> Any:
    """The smallest instance: required properties only, first alternatives, lower bounds."""
    return _instance(schema, schema, 0)


def invalid_instances(schema: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Objects that the schema rejects, each with what is wrong with it."""
    valid = valid_instance(schema)
    if not isinstance(valid, dict):
        return
    root = _resolved(schema, schema)
    properties: Mapping[str, Any] = root.get("properties", {})
    for name in root.get("required", ()):
        yield f"{name} left out", {key: value for key, value in valid.items() if key != name}
    for name, part in properties.items():
        part = _resolved(part, schema)
        if "const" in part:
            continue  # The mark of a kind of action: another value makes it another kind.
        wrong = _value_of_wrong_type(part)
        if wrong is not None:
            yield f"{name} of a wrong type", {**valid, name: wrong}
    if root.get("additionalProperties") is False:
        yield "an unknown field", {**valid, "no_such_field_3f1c": 1}


def _instance(schema: Any, root: Mapping[str, Any], depth: int) -> Any:
    if depth > _DEEPEST:
        raise NoInstanceError("the schema refers to itself without an end")
    if schema is True or schema == {}:
        return {}
    if not isinstance(schema, Mapping):
        raise NoInstanceError(f"no instance of {schema!r}")
    schema = _resolved(schema, root)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        if schema.get(key):
            return schema[key][0]
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return _first_of(schema[key], root, depth)
    kind = schema.get("type", "object" if "properties" in schema else None)
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), "null")
    match kind:
        case "object":
            required = schema.get("required", ())
            properties = schema.get("properties", {})
            return {
                name: _instance(properties.get(name, True), root, depth + 1) for name in required
            }
        case "array":
            items = list(schema.get("prefixItems", ()))
            items += [schema.get("items", True)] * (schema.get("minItems", 0) - len(items))
            return [_instance(item, root, depth + 1) for item in items]
        case "string":
            return _text(schema)
        case "integer" | "number":
            return _number(schema, is_whole=kind == "integer")
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return {}


def _first_of(alternatives: list[Any], root: Mapping[str, Any], depth: int) -> Any:
    problem = NoInstanceError("an empty choice")
    ordered = sorted(alternatives, key=lambda part: part == {"type": "null"})
    for alternative in ordered:
        try:
            return _instance(alternative, root, depth + 1)
        except NoInstanceError as error:
            problem = error
    raise problem


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema with its reference followed and its ``allOf`` merged."""
    for _ in range(_DEEPEST):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            break
        found: Any = root
        for part in reference.removeprefix("#").strip("/").split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            raise NoInstanceError(f"{reference} refers to nothing")
        schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
    if not schema.get("allOf"):
        return schema
    merged: dict[str, Any] = {"properties": {}, "required": []}
    for part in [*schema["allOf"], {k: v for k, v in schema.items() if k != "allOf"}]:
        part = _resolved(part, root)
        merged["properties"] |= part.get("properties", {})
        merged["required"] = [*merged["required"], *part.get("required", ())]
        merged |= {k: v for k, v in part.items() if k not in ("properties", "required")}
    return merged


def _text(schema: Mapping[str, Any]) -> str:
    if "pattern" in schema:
        raise NoInstanceError(f"no text is derived from the pattern {schema['pattern']!r}")
    text = _FORMATS.get(schema.get("format", ""), "a")
    shortest = schema.get("minLength", 0)
    return text.ljust(shortest, "a")[: schema.get("maxLength", max(len(text), shortest))]


def _number(schema: Mapping[str, Any], *, is_whole: bool) -> int | float:
    step = schema.get("multipleOf", 1 if is_whole else None)
    lowest = schema.get("minimum", -math.inf)
    if "exclusiveMinimum" in schema:
        lowest = max(lowest, schema["exclusiveMinimum"] + (step or 0.5))
    highest = schema.get("maximum", math.inf)
    if "exclusiveMaximum" in schema:
        highest = min(highest, schema["exclusiveMaximum"] - (step or 0.5))
    value = min(max(0, lowest), highest)
    if step:
        value = math.ceil(value / step) * step
        value = value if value <= highest else value - step
    if value < lowest:
        raise NoInstanceError(f"no number fits {dict(schema)}")
    return int(value) if is_whole else value


def _value_of_wrong_type(schema: Mapping[str, Any]) -> Any:
    """A value of a type that nothing in the schema allows and no lenient parser converts."""
    kinds = {schema.get("type")} | {
        part.get("type") for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ()))
    }
    if schema.get("type") is None and kinds == {None}:
        return {"of": ["no", "such", "type"]} if "enum" in schema or "const" in schema else None
    if "object" not in kinds:
        return {"of": ["no", "such", "type"]}
    return None if kinds & {"string", None} else "no object"
