"""Check the arguments of a tool call: coerce what is unambiguous, explain the rest to the model."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, cast

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from corral.env.json_types import in_words
from corral.env.json_values import has_truth_as_number, json_or_text
from corral.env.schema import ToolParameter
from corral.errors import ToolDefinitionError

_CONFIG = ConfigDict(coerce_numbers_to_str=True, allow_inf_nan=False)
_SHOWN_CHARACTERS = 80
"""How much of a wrong value the model is shown again; it wrote it, so a little is enough."""
_SHOWN_PROBLEMS = 5
_WRONG_TYPE_SUFFIXES = ("_type", "_parsing", "_parsing_size", "_from_float")
_WRONG_TYPES = frozenset({"literal_error", "enum", "finite_number"})


class ArgumentError(ValueError):
    """A call's arguments do not fit; the message is one line for the model."""


class ArgumentChecker:
    """Checks the calls of one tool; what it needs for that is compiled once, when it is made."""

    def __init__(self, name: str, parameters: tuple[ToolParameter, ...], *, source: str) -> None:
        self._name = name
        self._parameters = {parameter.name: parameter for parameter in parameters}
        self._adapters = {parameter.name: _adapter(parameter, source) for parameter in parameters}

    def check(self, arguments: object) -> dict[str, Any]:
        """The arguments as the function wants them; those left out stay out.

        But for a default that can be changed: each call gets a fresh one.

        Raises:
            ArgumentError: Something is missing, unknown, or of the wrong type.
        """
        given = self._mapping(arguments)
        checked: dict[str, Any] = {}
        problems = [self._unknown(name) for name in given if name not in self._parameters]
        for name, parameter in self._parameters.items():
            if name in given:
                try:
                    checked[name] = self._value(parameter, given[name])
                except ArgumentError as error:
                    problems.append(str(error))
            elif parameter.is_required:
                problems.append(f"argument {name!r} ({in_words(parameter.schema)}) is missing.")
            elif isinstance(cast("object", parameter.default), list | dict | set):
                # Python makes it once: what one episode adds to it, all others would find there.
                checked[name] = deepcopy(parameter.default)
        if problems:
            shown = problems[:_SHOWN_PROBLEMS]
            if len(problems) > len(shown):
                shown.append(f"And {len(problems) - len(shown)} more.")
            raise ArgumentError(f"{self._name}: {' '.join(shown)}")
        return checked

    def _mapping(self, arguments: object) -> Mapping[Any, Any]:
        if isinstance(arguments, str):
            arguments = json_or_text(arguments)
        if arguments is None:
            return {}
        if not isinstance(arguments, Mapping):
            raise ArgumentError(
                f"{self._name}: arguments must be an object, not {_shown(arguments)}. "
                f"{self._usage()}"
            )
        return cast("Mapping[Any, Any]", arguments)

    def _unknown(self, name: object) -> str:
        return f"there is no argument {_shown(name)}. {self._usage()}"

    def _usage(self) -> str:
        if not self._parameters:
            return "It takes no arguments."
        known = (f"{name} ({in_words(part.schema)})" for name, part in self._parameters.items())
        return f"Its arguments: {', '.join(known)}."

    def _value(self, parameter: ToolParameter, value: Any) -> Any:
        if value is None and not parameter.is_required and parameter.default is None:
            return None
        first_error: ErrorDetails | None = None
        for candidate in _readings(parameter.schema, value):
            if has_truth_as_number(parameter.schema, candidate):
                continue
            try:
                checked = self._adapters[parameter.name].validate_python(candidate)
            except ValidationError as error:
                first_error = first_error or error.errors(include_url=False)[0]
                continue
            if parameter.choices is None or checked in parameter.choices:
                return checked
        raise ArgumentError(_problem(parameter, value, first_error))


def _adapter(parameter: ToolParameter, source: str) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(parameter.hint, config=_CONFIG)
    except (PydanticUserError, TypeError) as error:
        raise ToolDefinitionError(
            f"{source}: the type hint of parameter {parameter.name!r} cannot be checked "
            f"({str(error).splitlines()[0]}). Write, for example: {parameter.name}: str"
        ) from error


def _readings(schema: Mapping[str, Any], value: Any) -> Iterator[Any]:
    """The value, then what else the model can only have meant by it."""
    yield value
    kind = schema.get("type")
    if "enum" in schema:
        yield from (choice for choice in schema["enum"] if str(choice) == str(value))
    elif isinstance(value, str) and kind in ("array", "object"):
        decoded = json_or_text(value)
        if isinstance(decoded, list | dict):
            yield decoded


def _problem(parameter: ToolParameter, value: Any, error: ErrorDetails | None) -> str:
    where = f"argument {parameter.name!r}"
    if not isinstance(value, bool) and has_truth_as_number(parameter.schema, value):
        return (
            f"{where}: true and false are no numbers, but {_shown(value)} has one in place of it."
        )
    if error is not None:
        is_inside = bool(error["loc"]) and parameter.schema.get("type") in ("array", "object")
        kind = error["type"]
        if is_inside or not (kind in _WRONG_TYPES or kind.endswith(_WRONG_TYPE_SUFFIXES)):
            path = "".join(f"[{_shown(step)}]" for step in error["loc"]) if is_inside else ""
            return f"{where}{path}: {error['msg']}, not {_shown(error['input'])}."
    return f"{where} must be {in_words(parameter.schema)}, not {_shown(value)}."


def _shown(value: object) -> str:
    try:
        text = repr(value[: 2 * _SHOWN_CHARACTERS] if isinstance(value, str) else value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, nesting without end
        text = f"a {type(value).__name__} that is too large"
    return shortened(text)


def shortened(text: str) -> str:
    """As much of what the model wrote as it is shown again."""
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
