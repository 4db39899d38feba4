"""Configurations for parsers of dataclasses, such as transformers' HfArgumentParser and TRL's.

Such a parser asks a class for its dataclass fields and type hints, makes an option of each, and
calls the class with what was given. A configuration offers all names that it reads: fields, their
other names, and settings of TRL that it answers.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin
from weakref import WeakKeyDictionary

from pydantic import BaseModel

_PLAIN = (bool, int, float, str)
_FLAG = {"nargs": "?", "const": True}
"""``--name`` alone is ``--name true``, also where the default is None."""

_annotations: WeakKeyDictionary[type, dict[str, Any]] = WeakKeyDictionary()
"""What pydantic is to read of classes whose annotations are those of options now."""


@dataclasses.dataclass(frozen=True, slots=True)
class NotGiven:
    """The default of a name that shares its field with others: parsers give all, one may count."""

    default: Any

    def __repr__(self) -> str:
        return repr(self.default)


def offer_options(cls: type[BaseModel]) -> None:
    """Make a class look like a dataclass of its options."""
    options = [*_of_fields(cls), *_of_other_names(cls), *_of_foreign_settings(cls)]
    made = dataclasses.make_dataclass(cls.__name__, options, init=False, repr=False, eq=False)
    _annotations[cls] = cls.__annotations__
    cls.__annotations__ = made.__annotations__
    cls.__dataclass_fields__ = made.__dataclass_fields__  # type: ignore[attr-defined]


@contextmanager
def fields_annotated(bases: tuple[type, ...]) -> Iterator[None]:
    """Classes have the annotations of their fields, which pydantic reads to make a subclass."""
    classes = [cls for base in bases for cls in base.__mro__ if cls in _annotations]
    options = {cls: cls.__annotations__ for cls in classes}
    for cls in classes:
        cls.__annotations__ = _annotations[cls]
    try:
        yield
    finally:
        for cls in classes:
            cls.__annotations__ = options[cls]


def scalar(text: str) -> Any:
    """A number or truth value, None for "none", and any other text as it is."""
    if text.lower() in ("none", "null"):
        return None
    try:
        value = json.loads(text.lower())
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) else text


Option = tuple[str, Any, Any]
"""Name, type and dataclass field."""


def _of_fields(cls: type[BaseModel]) -> Iterator[Option]:
    known_otherwise = set(getattr(cls, "OTHER_NAMES", {}).values())
    for name, field in cls.model_fields.items():
        if field.is_required():
            continue  # pydantic says that it is missing
        kind, factory = _type(field.annotation), field.default_factory
        if name in known_otherwise:
            default = field.get_default(call_default_factory=True, validated_data={})
            yield _option(name, kind, default=NotGiven(default))
        elif factory is not None:
            yield _option(name, kind, default_factory=factory)
        else:
            yield _option(name, kind, default=field.default)


def _of_other_names(cls: type[BaseModel]) -> Iterator[Option]:
    names: Mapping[str, str] = getattr(cls, "OTHER_NAMES", {})
    for other, own in names.items():
        if own in cls.model_fields:
            kind = _type(cls.model_fields[own].annotation) | None
            yield _option(other, kind, default=NotGiven(None))


def _of_foreign_settings(cls: type[BaseModel]) -> Iterator[Option]:
    settings: Mapping[str, Any] = getattr(cls, "FOREIGN", {})
    for name, setting in settings.items():
        default = setting.default
        if isinstance(default, list):
            yield _option(name, list[str], default_factory=default.copy)
        else:
            kind = type(default) if isinstance(default, _PLAIN) else scalar
            yield _option(name, kind, default=default)


def _option(name: str, kind: Any, **default: Any) -> Option:
    flag = _FLAG if kind == bool | None else {}
    return name, kind, dataclasses.field(metadata=flag, **default)


def _type(annotation: Any) -> Any:
    """A type that argparse can call with a text; mappings and choices are checked later."""
    if get_origin(annotation) is Annotated:
        return _type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        kinds = [_type(part) for part in get_args(annotation) if part is not type(None)]
        return (kinds[0] if len(kinds) == 1 else str) | None
    if get_origin(annotation) is list:
        return list[_type(get_args(annotation)[0])]
    return annotation if annotation in _PLAIN else str
