"""Dotted overrides: ``section.key=value``.

A value is read as TOML (``3``, ``1e-6``, ``true``, ``[1, 2]``, ``{ a = 1 }``, ``"text"``) where the
setting accepts that, else as the text itself. ``none`` unsets a setting that may be unset; quote it
(``'"none"'``) where the text is meant.
"""

import tomllib
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from corral.config.schema import accepts, annotation_at
from corral.errors import UsageError

NONE_WORDS = frozenset({"none", "null"})
NONE_TABLE = {"none": True}
"""How a file says None where the text ``"none"`` would be legal: ``key = { none = true }``."""

_BARE_WORDS = {"True": True, "False": False}
"""Python's spelling; without this, ``False`` would be a text, and true, in an untyped table."""


def parse_override(text: str) -> tuple[tuple[str, ...], str]:
    """The path and the raw value of one ``section.key=value``."""
    key, sign, raw = text.partition("=")
    path = tuple(part.strip() for part in key.split("."))
    if not sign or not all(path):
        raise UsageError(f"--set {text!r}: write it as section.key=value.")
    return path, raw.strip()


def override_value(model: type[BaseModel], path: Sequence[str], raw: str) -> Any:
    """What ``raw`` means for the setting at ``path``: the first reading that it accepts."""
    try:
        annotation = annotation_at(model, path)
    except KeyError:
        annotation = Any
    readings = _readings(raw)
    return next((value for value in readings if accepts(annotation, value)), readings[0])


def set_at(data: dict[str, Any], path: Sequence[str], value: Any, *, origin: str) -> None:
    """Put ``value`` at ``path``, making the tables on the way."""
    target: Any = data
    for position, name in enumerate(path[:-1]):
        if isinstance(target, list):
            target = target[_list_index(target, path, position, origin)]
        else:
            if not isinstance(target.get(name), dict | list):
                target[name] = {}
            target = target[name]
        if not isinstance(target, dict | list):
            _refuse(path, position, origin)
    if isinstance(target, list):
        target[_list_index(target, path, len(path) - 1, origin)] = value
    else:
        target[path[-1]] = value


def replace_none_tables(value: Any) -> Any:
    """Plain data with every ``{ none = true }`` turned into None."""
    if isinstance(value, dict):
        if value == NONE_TABLE and value["none"] is True:
            return None
        return {key: replace_none_tables(item) for key, item in value.items()}
    if isinstance(value, list):
        return [replace_none_tables(item) for item in value]
    return value


def _readings(raw: str) -> list[Any]:
    if raw.lower() in NONE_WORDS:
        return [None, raw]
    if raw in _BARE_WORDS:
        return [_BARE_WORDS[raw], raw]
    try:
        parsed = tomllib.loads(f"value = {raw}")
    except tomllib.TOMLDecodeError:
        return [raw]
    if set(parsed) != {"value"}:
        return [raw]
    return [replace_none_tables(parsed["value"]), raw]


def _list_index(items: list[Any], path: Sequence[str], position: int, origin: str) -> int:
    name = path[position]
    if not name.isdecimal() or int(name) >= len(items):
        where = ".".join(path[:position])
        raise UsageError(
            f"{origin} {'.'.join(path)}: {where} is a list of {len(items)}; "
            f"{name!r} is none of its positions (they count from 0)."
        )
    return int(name)


def _refuse(path: Sequence[str], position: int, origin: str) -> None:
    raise UsageError(
        f"{origin} {'.'.join(path)}: {'.'.join(path[: position + 1])} is not a table or a list."
    )
