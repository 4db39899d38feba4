"""What a configuration model allows at a dotted name, and the nearest name to a wrong one.

A model may read more names than those of its fields, by two more attributes of its class:
``OTHER_NAMES`` has the field that each stands for; ``FOREIGN`` has names without a field, which the
model's own validator accepts or refuses.
"""

import difflib
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from corral.config.tree import Keys

SUGGESTIONS = 3


def nested_model(annotation: Any) -> type[BaseModel] | None:
    """The one model that ``annotation`` stands for, if it is a model or an optional model."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) is Annotated:
        return nested_model(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        models = [nested_model(part) for part in get_args(annotation) if part is not type(None)]
        return models[0] if len(models) == 1 else None
    return None


def annotation_at(model: type[BaseModel], path: Sequence[str]) -> Any:
    """The type of the value at ``path``; ``Any`` where the model does not say.

    Raises:
        KeyError: A model on the way has no such field. Its argument is the index in ``path``.
    """
    annotation: Any = model
    for position, name in enumerate(path):
        section = nested_model(annotation)
        if section is None:
            annotation = _element(annotation)
            continue
        own = other_names(section).get(name, name)
        if own in section.model_fields:
            annotation = _full_annotation(section.model_fields[own])
        elif own in _foreign_names(section):
            annotation = Any
        else:
            raise KeyError(position)
    return annotation


def other_names(section: type[BaseModel] | None) -> Mapping[str, str]:
    """Names that a section reads besides those of its fields, each with its field."""
    return getattr(section, "OTHER_NAMES", {})


def accepts(annotation: Any, value: Any) -> bool:
    """Whether a value fits, conversions included."""
    if annotation is Any:
        return True
    try:
        TypeAdapter(annotation).validate_python(value)
    except ValidationError:
        return False
    return True


def dotted_names(model: type[BaseModel], prefix: Keys = ()) -> Iterator[str]:
    """Every dotted name of a model, sections included."""
    for name, field in model.model_fields.items():
        yield ".".join((*prefix, name))
        section = nested_model(field.annotation)
        if section is not None:
            yield from dotted_names(section, (*prefix, name))


def suggestions(model: type[BaseModel], path: Sequence[str], position: int) -> list[str]:
    """Legal dotted names near a wrong one: in the same section first, then by last word."""
    section = nested_model(annotation_at(model, path[:position]))
    siblings = list(section.model_fields) if section is not None else []
    siblings += [*other_names(section), *_foreign_names(section)]
    prefix, wrong = path[:position], path[position]
    near = difflib.get_close_matches(wrong, siblings, n=SUGGESTIONS, cutoff=0.6)
    names = [".".join((*prefix, name)) for name in near]
    everywhere = list(dotted_names(model))
    names += [name for name in everywhere if name.split(".")[-1] == path[-1]]
    names += difflib.get_close_matches(".".join(path), everywhere, n=1, cutoff=0.8)
    return list(dict.fromkeys(names))[:SUGGESTIONS]


def legal_names(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    """The fields of the section at ``path``."""
    section = nested_model(annotation_at(model, path))
    return list(section.model_fields) if section is not None else []


def _foreign_names(section: type[BaseModel] | None) -> Collection[str]:
    return getattr(section, "FOREIGN", ())


def _full_annotation(field: FieldInfo) -> Any:
    if not field.metadata:
        return field.annotation
    return Annotated[(field.annotation, *field.metadata)]


def _element(annotation: Any) -> Any:
    """The type of what a dict or a list holds."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _element(arguments[0])
    if origin in (Union, types.UnionType):
        parts = [_element(part) for part in arguments if part is not type(None)]
        return parts[0] if len(parts) == 1 else Any
    if isinstance(origin, type) and issubclass(origin, Mapping) and len(arguments) == 2:
        return arguments[1]
    if isinstance(origin, type) and issubclass(origin, Sequence | set | frozenset) and arguments:
        return arguments[0]
    return Any
