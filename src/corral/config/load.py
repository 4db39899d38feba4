"""Loads a configuration: defaults, then the recipe, then flags, then ``--set``, later ones win."""

import tomllib
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from corral.config.overrides import (
    NONE_WORDS,
    override_value,
    parse_override,
    replace_none_tables,
    set_at,
)
from corral.config.resolved import DEFAULT, OVERRIDE, RECIPE, Flag, Model, Resolved
from corral.config.schema import (
    accepts,
    annotation_at,
    legal_names,
    nested_model,
    other_names,
    suggestions,
)
from corral.config.secrets import MASK, is_secret_name
from corral.config.tree import Keys, children, is_table, is_table_list, leaves
from corral.errors import UsageError


def load(
    source: Path | str | Mapping[str, Any],
    overrides: Iterable[str],
    model: type[Model],
    *,
    flags: Iterable[Flag] = (),
) -> Resolved[Model]:
    """Read TOML, apply flags and overrides, validate, and remember where each value came from.

    Args:
        source: A path (``Path``, or text ending in ``.toml``), TOML text, or plain data.
        overrides: ``"section.key=value"`` each, as ``--set`` takes them.
        model: The pydantic model of the whole; its sections are models too.
        flags: Values from options of their own, such as ``--seed``.

    Raises:
        UsageError: A file that is missing or no TOML, an unknown name (the nearest legal ones are
            named), or a value that does not fit.
    """
    data = replace_none_tables(_read(source))
    _check_names(model, data, RECIPE)
    data = _under_own_names(model, data, ())
    data = _read_none_words(model, data, ())
    origins = dict.fromkeys(leaves(data), RECIPE)
    for flag in flags:
        path = tuple(flag.key.split("."))
        _apply(model, data, origins, path, flag.value, flag.name)
    for text in overrides:
        path, raw = parse_override(text)
        _apply(model, data, origins, path, override_value(model, path, raw), OVERRIDE)
    value = _validate(model, data, origins)
    return Resolved(value=value, origins=_all_origins(value, origins))


def origin_of(origins: Mapping[Keys, str], path: Keys) -> str:
    """The origin of the value at ``path``: its own, or that of the nearest section above it."""
    for length in range(len(path), 0, -1):
        if path[:length] in origins:
            return origins[path[:length]]
    return DEFAULT


def _read(source: Path | str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(source, Mapping):
        return deepcopy(dict(source))
    is_path = isinstance(source, Path) or source.endswith(".toml")
    name = str(source) if is_path else "the configuration"
    try:
        text = Path(source).read_text(encoding="utf-8") if is_path else str(source)
        return tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"Cannot read {name}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name} is not valid TOML: {error}.") from error


def _apply(
    model: type[BaseModel],
    data: dict[str, Any],
    origins: dict[Keys, str],
    path: Keys,
    value: Any,
    origin: str,
) -> None:
    _check_path(model, path, origin)
    _check_lists(model, data, path, origin)
    path = tuple(_own_name(model, path, position) for position in range(len(path)))
    set_at(data, path, value, origin=origin)
    _check_names(model, data, origin)
    for old in [key for key in origins if key[: len(path)] == path]:
        del origins[old]
    # A leaf that has become a section must not lend its origin to what is below it.
    for length in range(1, len(path)):
        origins.pop(path[:length], None)
    origins.update(dict.fromkeys(leaves(value, path), origin))


def _check_path(model: type[BaseModel], path: Keys, origin: str) -> None:
    try:
        annotation_at(model, path)
    except KeyError as error:
        raise _unknown(model, path, error.args[0], origin) from None


def _under_own_names(model: type[BaseModel], value: Any, path: Keys) -> Any:
    """Plain data with every field under its own name, and not under another that is read too."""
    if is_table_list(value):
        return [_under_own_names(model, item, (*path, name)) for name, item in children(value)]
    if not isinstance(value, dict):
        return value
    given: dict[str, str] = {}
    for name in value:
        own = _own_name(model, (*path, name), len(path))
        if own in given:
            raise UsageError(
                f"{RECIPE}: {'.'.join((*path, given[own]))} and {name} are one setting: give one "
                "of them."
            )
        given[own] = name
    return {own: _under_own_names(model, value[name], (*path, own)) for own, name in given.items()}


def _own_name(model: type[BaseModel], path: Keys, position: int) -> str:
    section = nested_model(annotation_at(model, path[:position]))
    return other_names(section).get(path[position], path[position])


def _check_lists(model: type[BaseModel], data: Any, path: Keys, origin: str) -> None:
    """Refuse a position in a list that is not there: it would become a table named ``0``."""
    for length, name in enumerate(path):
        annotation = annotation_at(model, path[:length])
        is_position = name.isdecimal() and not isinstance(data, list)
        if is_position and accepts(annotation, []) and not accepts(annotation, {}):
            section = ".".join(path[:length])
            raise UsageError(
                f"{origin} {'.'.join(path)}: {section} has no elements yet. "
                f"Set it in the recipe, or as a whole with --set {section}=[…]."
            )
        data = dict(children(data)).get(name) if is_table(data) or is_table_list(data) else None


def _check_names(model: type[BaseModel], data: Mapping[str, Any], origin: str) -> None:
    for path in leaves(data):
        _check_path(model, path, origin)


def _unknown(model: type[BaseModel], path: Keys, position: int, origin: str) -> UsageError:
    wrong = ".".join(path[: position + 1])
    near = suggestions(model, path, position)
    if near:
        remedy = f"Did you mean {' or '.join(near)}?"
    else:
        section = ".".join(path[:position])
        known = ", ".join(legal_names(model, path[:position]))
        remedy = f"{f'[{section}] has' if section else 'There are'}: {known}."
    return UsageError(f"{origin}: there is no setting {wrong!r}. {remedy}")


def _read_none_words(model: type[BaseModel], value: Any, path: Keys) -> Any:
    """In a file, the text ``"none"`` is None for a setting that takes None and no such text."""
    if isinstance(value, dict):
        return {key: _read_none_words(model, item, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [
            _read_none_words(model, item, (*path, str(position)))
            for position, item in enumerate(value)
        ]
    if isinstance(value, str) and value.lower() in NONE_WORDS:
        annotation = annotation_at(model, path)
        if annotation is not Any and not accepts(annotation, value) and accepts(annotation, None):
            return None
    return value


def _validate(model: type[Model], data: Mapping[str, Any], origins: Mapping[Keys, str]) -> Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems = [_problem(detail, data, origins) for detail in error.errors()]
        raise UsageError("\n".join(dict.fromkeys(problems))) from error


def _problem(detail: Any, data: Mapping[str, Any], origins: Mapping[Keys, str]) -> str:
    path, kind = _place_of(detail["loc"], data)
    message = str(detail["msg"]).removeprefix("Value error, ").rstrip(".")
    name = ".".join(path)
    if not path:
        return f"{message}."
    if detail["type"] == "missing":
        return f"{name} is not set and has no default: set it in the recipe or with --set {name}=…"
    given = detail["input"]
    if detail["type"] == "extra_forbidden" and kind is not None:
        section, _, setting = name.rpartition(".")
        message = f"[{section}] of the kind {kind!r} has no {setting}: leave it out"
    if isinstance(given, Mapping | BaseModel):  # the message names what is wrong within
        return f"{name}: {message}."
    return f"{name} = {_short(given, name)} ({origin_of(origins, path)}): {message}."


def _place_of(location: Iterable[int | str], data: Any) -> tuple[Keys, str | None]:
    """Where an error is, and the kind of the section it is in, which pydantic puts into the path.

    A section has a kind where one of its values says which of several models reads it.
    """
    path: list[str] = []
    kind = None
    names = [str(part) for part in location]
    while names:
        section = dict(children(data)) if is_table(data) or is_table_list(data) else {}
        name = names.pop(0)
        if name in section.values() and (names or name not in section):
            kind = name
            name = names.pop(0) if names else name
        path.append(name)
        data = section.get(name)
    return tuple(path), kind


def _short(value: Any, name: str) -> str:
    text = MASK if is_secret_name(name.rpartition(".")[2]) else repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _all_origins(value: BaseModel, origins: Mapping[Keys, str]) -> dict[str, str]:
    return {".".join(path): origin_of(origins, path) for path in leaves(value)}
