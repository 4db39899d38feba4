"""A function, its hints and its docstring as the schema a chat template shows to the model."""

import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast, get_type_hints

from corral.env.docstring import ToolText, read_docstring
from corral.env.json_types import SUPPORTED_TYPES, UnsupportedTypeError, json_schema
from corral.errors import ToolDefinitionError

_CHOICES = re.compile(r"^(?P<text>.*?)\s*\(choices:\s*(?P<choices>.*?)\)\s*$", re.I | re.S)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolParameter:
    """One argument of a tool."""

    name: str
    hint: Any
    """The resolved type hint, ``Annotated`` metadata included."""
    schema: dict[str, Any]
    is_required: bool
    default: Any
    """What the function uses when the argument is left out; None too where it is required."""
    choices: tuple[Any, ...] | None
    """What ``(choices: [...])`` in the docstring allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionDescription:
    """A function as a model sees it, and as a call to it is checked."""

    schema: dict[str, Any]
    parameters: tuple[ToolParameter, ...]


def function_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """The schema of one function: ``{"type": "function", "function": {...}}``.

    Raises:
        ToolDefinitionError: Docstring, hints or signature do not say enough.
    """
    return describe(function, source=function_source(function)).schema


def function_source(function: Callable[..., Any]) -> str:
    """What to call a function in a message: ``Class.method`` or ``function``."""
    return getattr(function, "__qualname__", repr(function)).rpartition("<locals>.")[2]


def describe(
    function: Callable[..., Any],
    *,
    source: str,
    skips_self: bool = False,
    docstring: str | None = None,
    namespace: Mapping[str, Any] | None = None,
) -> FunctionDescription:
    """Describe ``function`` to a model and to the checker of calls.

    Args:
        source: What messages call it.
        skips_self: Whether the first parameter is the instance.
        docstring: Replaces the function's own (an override may inherit its text).
        namespace: More names that string annotations may use.
    """
    text = read_docstring(_docstring(function, source, skips_self, docstring))
    if not text.description:
        raise ToolDefinitionError(
            f"{source} has a docstring that does not say what it does. "
            f'Begin it with a sentence: """What {function.__name__} does.'
        )
    parameters = tuple(
        _parameter(parameter, function, source, text, namespace)
        for parameter in _signature(function, source, skips_self)
    )
    properties = {parameter.name: parameter.schema for parameter in parameters}
    required = [parameter.name for parameter in parameters if parameter.is_required]
    schema: dict[str, Any] = {
        "name": function.__name__,
        "description": text.description,
        "parameters": {
            "type": "object",
            "properties": properties,
            **({"required": required} if required else {}),
        },
    }
    returns = _return_schema(function, text, namespace)
    if returns is not None:
        schema["return"] = returns
    return FunctionDescription(
        schema={"type": "function", "function": schema}, parameters=parameters
    )


def _docstring(
    function: Callable[..., Any], source: str, skips_self: bool, docstring: str | None
) -> str:
    text = docstring if docstring is not None else inspect.getdoc(function)
    if text and text.strip():
        return text
    remedy = f'Add: """What {function.__name__} does."""'
    names = [parameter.name for parameter in _signature(function, source, skips_self)]
    if names:
        entries = "".join(f" {name}: What {name} is." for name in names)
        remedy += f" with an 'Args:' section that says{entries}"
    hide = f" Or rename it to _{function.__name__} to hide it from the model." * skips_self
    raise ToolDefinitionError(
        f"{source} has no docstring, so a model cannot know what it does. {remedy}{hide}"
    )


def _signature(
    function: Callable[..., Any], source: str, skips_self: bool
) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(
            f"{source} has no readable signature. Wrap it in a function written with def."
        ) from error
    if skips_self:
        if not parameters or parameters[0].kind in (
            inspect.Parameter.KEYWORD_ONLY,
            inspect.Parameter.VAR_KEYWORD,
        ):
            raise ToolDefinitionError(
                f"{source} takes no self. Write: def {function.__name__}(self), "
                "or put @staticmethod above it."
            )
        if parameters[0].kind is not inspect.Parameter.VAR_POSITIONAL:
            parameters = parameters[1:]
    for parameter in parameters:
        _refuse_unnamed(parameter, source)
    return parameters


def _refuse_unnamed(parameter: inspect.Parameter, source: str) -> None:
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise ToolDefinitionError(
            f"{source}: parameter {parameter.name!r} is positional-only, but a model names its "
            "arguments. Remove the '/' from the signature."
        )
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        stars = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else "**"
        example = "list[str]" if stars == "*" else "dict[str, str]"
        raise ToolDefinitionError(
            f"{source}: parameter '{stars}{parameter.name}' cannot be described to a model. "
            f"Replace it by named parameters, such as: {parameter.name}: {example}"
        )


def _parameter(
    parameter: inspect.Parameter,
    function: Callable[..., Any],
    source: str,
    text: ToolText,
    namespace: Mapping[str, Any] | None,
) -> ToolParameter:
    name = parameter.name
    hint = _hint(parameter, function, source, namespace)
    try:
        schema = json_schema(hint)
    except UnsupportedTypeError as error:
        raise ToolDefinitionError(
            f"{source}: parameter {name!r} has the type {error}, which no model can write as JSON. "
            f"Write, for example: {name}: str (supported: {SUPPORTED_TYPES})"
        ) from None
    if not text.arguments.get(name):
        raise ToolDefinitionError(
            f"{source}: parameter {name!r} has no description. "
            f"Add to its docstring, under 'Args:', the line: {name}: What {name} is."
        )
    description, choices = _choices(text.arguments[name], name, source)
    schema = schema | ({"enum": list(choices)} if choices is not None else {})
    is_required = parameter.default is inspect.Parameter.empty
    return ToolParameter(
        name=name,
        hint=hint,
        schema=schema | {"description": description},
        is_required=is_required,
        default=None if is_required else parameter.default,
        choices=choices,
    )


def _hint(
    parameter: inspect.Parameter,
    function: Callable[..., Any],
    source: str,
    namespace: Mapping[str, Any] | None,
) -> Any:
    name = parameter.name
    if parameter.annotation is inspect.Parameter.empty:
        default = parameter.default
        plain = type(default).__name__ if type(default) in (int, float, bool) else "str"
        value = "" if default is inspect.Parameter.empty else f" = {default!r}"
        raise ToolDefinitionError(
            f"{source}: parameter {name!r} has no type hint. "
            f"Write in the signature: {name}: {plain}{value}"
        )
    try:
        return _resolve(parameter.annotation, function, namespace)
    except Exception as error:  # an annotation is code, and may raise anything
        raise ToolDefinitionError(
            f"{source}: the type hint {parameter.annotation!r} of parameter {name!r} cannot be "
            f"resolved ({error}). Import or define that name at the top of the module, "
            f"outside TYPE_CHECKING; or write, for example: {name}: str"
        ) from error


def _resolve(
    annotation: Any, function: Callable[..., Any], namespace: Mapping[str, Any] | None
) -> Any:
    original = inspect.unwrap(function)
    carrier = SimpleNamespace(__annotations__={"hint": annotation})
    module_names: dict[str, Any] = getattr(original, "__globals__", {})
    try:
        hints = get_type_hints(carrier, module_names, include_extras=True)
    except NameError:
        # A hint may name what only the enclosing class or function knows.
        names: dict[str, Any] = dict(namespace or {})
        if inspect.isfunction(original):
            names.update(inspect.getclosurevars(original).nonlocals)
        hints = get_type_hints(carrier, module_names, names, include_extras=True)
    return hints["hint"]


def _choices(description: str, name: str, source: str) -> tuple[str, tuple[Any, ...] | None]:
    match = _CHOICES.match(description)
    if match is None:
        return description, None
    try:
        choices: Any = json.loads(match["choices"])
    except ValueError:
        choices = None
    if not isinstance(choices, list) or not choices:
        raise ToolDefinitionError(
            f"{source}: parameter {name!r} has choices that are not a JSON list: "
            f'{match["choices"]}. Write, for example: {name}: What it is (choices: ["a", "b"])'
        )
    return match["text"], tuple(cast("list[Any]", choices))


def _return_schema(
    function: Callable[..., Any], text: ToolText, namespace: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    annotation = inspect.signature(function).return_annotation
    if annotation is inspect.Signature.empty:
        return None
    try:
        schema = json_schema(_resolve(annotation, function, namespace))
    except Exception:  # noqa: BLE001 - what a tool returns is shown as text whatever its type
        return None
    return schema | ({"description": text.returns} if text.returns else {})
