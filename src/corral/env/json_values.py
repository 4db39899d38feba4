"""What values of a call can be taken for, and what they must not be taken for."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from corral.records.strict_json import strict_decoder


def json_or_text(text: str) -> object:
    """What JSON text means; the text itself where readers could differ about what that is.

    They do about keys that come twice, and about numbers that are none.
    """
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return text


def has_truth_as_number(schema: Mapping[str, Any], value: object) -> bool:
    """Whether true or false stands where a number should: Python would take it for 1 or 0."""
    if isinstance(value, bool):
        return schema.get("type") in ("integer", "number")
    if "anyOf" in schema:
        parts: Sequence[Any] = schema["anyOf"]
        return all(has_truth_as_number(part, value) for part in parts)
    if isinstance(value, list):
        return _has_in_list(schema, cast("list[object]", value))
    if isinstance(value, dict) and isinstance(schema.get("additionalProperties"), Mapping):
        part = cast("Mapping[str, Any]", schema["additionalProperties"])
        return any(has_truth_as_number(part, each) for each in cast("Any", value).values())
    return False


def _has_in_list(schema: Mapping[str, Any], items: Sequence[object]) -> bool:
    parts: Sequence[Mapping[str, Any]] = schema.get("prefixItems") or ()
    each: Mapping[str, Any] = schema.get("items") or {}
    return any(
        has_truth_as_number(parts[place] if place < len(parts) else each, item)
        for place, item in enumerate(items)
    )


_DECODER = strict_decoder(ValueError)
