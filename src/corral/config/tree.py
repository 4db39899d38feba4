"""How a configuration is cut into tables and values, the same for plain data and for models."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

Keys = tuple[str, ...]
"""A dotted name, cut at its dots; elements of a list are named by position."""


def is_table(value: Any) -> bool:
    """Whether a value has names below it: a model, or a mapping that is not empty."""
    return isinstance(value, BaseModel) or (isinstance(value, Mapping) and len(value) > 0)


def is_table_list(value: Any) -> bool:
    """Whether a value is a list of tables and nothing else."""
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str | bytes)
        and len(value) > 0
        and all(isinstance(item, BaseModel | Mapping) for item in value)
    )


def children(value: Any) -> list[tuple[str, Any]]:
    """What is directly below a table or a list of tables, by name."""
    if isinstance(value, BaseModel):
        return [(name, getattr(value, name)) for name in type(value).model_fields]
    if isinstance(value, Mapping):
        return [(str(getattr(key, "value", key)), item) for key, item in value.items()]
    return [(str(position), item) for position, item in enumerate(value)]


def leaves(value: Any, path: Keys = ()) -> Iterator[Keys]:
    """The names of all values that are no tables."""
    if is_table(value) or is_table_list(value):
        for name, item in children(value):
            yield from leaves(item, (*path, name))
    elif path:
        yield path
