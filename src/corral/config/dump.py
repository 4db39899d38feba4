"""Writes a resolved configuration as TOML, with the origin of each value as a comment."""

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from enum import Enum
from pathlib import PurePath
from typing import Any

import tomli_w
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from corral.config.resolved import DEFAULT, Resolved
from corral.config.schema import accepts, annotation_at
from corral.config.secrets import is_secret_name, redact
from corral.config.tree import Keys, children, is_table, is_table_list

_COMMENT_COLUMN = 44
"""Comments line up here where the value is short enough."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def dump(resolved: Resolved[Any]) -> str:
    """TOML that ``load`` reads back to an equal configuration, secrets apart.

    A secret (a ``SecretStr``, or a text under a secret's name) is left out and its place is marked.
    TOML has no None: a value that is None by default becomes a comment, any other ``"none"``, or
    ``{ none = true }`` where the text itself would be legal.
    """
    return "\n".join(_table(resolved, resolved.value, (), ())).strip("\n") + "\n"


def _table(resolved: Resolved[Any], value: Any, path: Keys, header: Keys) -> Iterator[str]:
    """One table: its plain values first, as TOML demands, then the tables within.

    ``path`` names elements of lists by position, ``header`` leaves positions out, as TOML does.
    """
    items = children(value)
    for name, item in items:
        if not (is_table(item) or is_table_list(item)):
            yield _line(resolved, value, item, (*path, name))
    for name, item in items:
        below, title = (*path, name), (*header, name)
        if is_table(item):
            yield from ("", f"[{_dotted(title)}]")
            yield from _table(resolved, item, below, title)
        elif is_table_list(item):
            for position, element in children(item):
                yield from ("", f"[[{_dotted(title)}]]")
                yield from _table(resolved, element, (*below, position), title)


def _line(resolved: Resolved[Any], owner: Any, value: Any, path: Keys) -> str:
    key = _key(path[-1])
    if _is_secret(path[-1], value):
        return f"# {key}: a secret, not saved"
    if value is None and _is_none_by_default(owner, path[-1]):
        text = f"# {key} = none"
    elif value is None:
        text = f"{key} = {_none(type(resolved.value), path)}"
    else:
        text = f"{key} = {_inline(redact(_plain(value)))}"
    origin = resolved.origins.get(".".join(path), DEFAULT)
    return f"{text:<{_COMMENT_COLUMN}}  # {origin}"


def _is_secret(name: str, value: Any) -> bool:
    is_named_so = isinstance(value, str) and is_secret_name(name)
    return is_named_so or hasattr(value, "get_secret_value")


def _is_none_by_default(owner: Any, name: str) -> bool:
    if not isinstance(owner, BaseModel):
        return False
    field = type(owner).model_fields[name]
    return not field.is_required() and (
        field.get_default(call_default_factory=True, validated_data={}) is None
    )


def _none(model: type[BaseModel], path: Keys) -> str:
    annotation = annotation_at(model, path)
    is_text_legal = annotation is Any or accepts(annotation, "none")
    return "{ none = true }" if is_text_legal else '"none"'


def _plain(value: Any) -> Any:
    """A value of TOML's own types; None inside lists becomes the table that stands for it."""
    if value is None:
        return {"none": True}
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, bool | int | float | str | datetime | date | time):
        return value
    if isinstance(value, PurePath):
        return value.as_posix()
    if isinstance(value, BaseModel | Mapping):
        return {name: _plain(item) for name, item in children(value)}
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=lambda item: (str(type(item)), item))
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return to_jsonable_python(value)


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(name)} = {_inline(item)}" for name, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(_inline(item) for item in value)}]"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").rstrip("\n")


def _dotted(path: Keys) -> str:
    return ".".join(_key(name) for name in path)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _inline(name)
