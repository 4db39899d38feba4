"""From JSON schema back to Python: methods with the signature and docstring that a schema tells.

Tools that live elsewhere, on a server or in another library, must look to a model as they do
there. The schema is made from a method; here a method is made from the schema, such that it gives
the same schema again.
"""

# pyright: standard
# Not strict as its neighbours: a JSON schema is a nested mapping of anything.

import inspect
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, cast

from corral.env.docstring import ToolText, read_docstring

_PLAIN: dict[str, Any] = {
    "integer": int,
    "number": float,
    "string": str,
    "boolean": bool,
    "null": None,
    "array": list,
    "object": dict,
}
_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "multipleOf": "a multiple of {}",
    "pattern": "matching {}",
}
"""What hints cannot say is said in words."""

Schema = Mapping[str, Any]


class _LeftOut:
    """The default of an argument whose default only the server knows."""

    def __repr__(self) -> str:
        return "<the server's default>"


LEFT_OUT = _LeftOut()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as a server tells it."""

    name: str
    description: str
    parameters: Schema
    """JSON schema of an object; ``$defs`` may be in it."""
    returns: Schema | None = None
    """JSON schema of what it returns, where that is known."""


def method_of(spec: ToolSpec, call: Callable[[Any, dict[str, Any]], Any]) -> Callable[..., Any]:
    """A method that has the tool's signature and passes its arguments to ``call``.

    It is asynchronous if ``call`` is.
    """
    names = _parameter_names(spec)
    text = _text(spec, names)
    signature = _signature(spec, names)
    remote_names = {python: remote for remote, python in names.items()}

    def given(self: Any, args: Any, kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(self, *args, **kwargs)
        del bound.arguments["self"]
        return {remote_names[name]: value for name, value in bound.arguments.items()}

    async def asynchronous(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await call(self, given(self, args, kwargs))

    def synchronous(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call(self, given(self, args, kwargs))

    method = asynchronous if inspect.iscoroutinefunction(call) else synchronous
    function = cast("Any", method)
    function.__name__ = function.__qualname__ = spec.name
    function.__doc__ = docstring(text, (spec.returns or {}).get("description"))
    function.__signature__ = signature
    return method


def python_name(name: str, *, taken: Sequence[str] = ()) -> str:
    """A name like ``name`` that a Python method can have and none of ``taken`` has."""
    clean = re.sub(r"\W+", "_", name).strip("_") or "tool"
    if clean[0].isdigit():
        clean = f"tool_{clean}"
    while clean in taken or keyword.iskeyword(clean):
        clean += "_"
    return clean


def hint_of(schema: Schema, definitions: Schema | None = None) -> Any:
    """The type hint that a JSON schema stands for; `typing.Any` where there is none."""
    schema = resolved(schema, definitions or {})
    if "const" in schema:
        return _literal([schema["const"]])
    if "enum" in schema:
        hint = _literal(schema["enum"])
    elif "anyOf" in schema or "oneOf" in schema:
        parts: Any = schema.get("anyOf") or schema.get("oneOf")
        hint = _union([hint_of(part, definitions) for part in parts])
    elif isinstance(schema.get("type"), list):
        hint = _union([_PLAIN.get(kind, Any) for kind in schema["type"]])
    else:
        hint = _single(schema, definitions)
    return _union([hint, None]) if schema.get("nullable") else hint


def resolved(schema: Any, definitions: Schema) -> Schema:
    """A schema without a reference at its top."""
    seen: set[str] = set()
    while isinstance(schema, Mapping):
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in seen:
            seen.add(reference)
            target = definitions.get(reference.rpartition("/")[2], {})
            rest = {name: value for name, value in schema.items() if name != "$ref"}
            schema = {**target, **rest}
        elif isinstance(schema.get("allOf"), list) and len(schema["allOf"]) == 1:
            rest = {name: value for name, value in schema.items() if name != "allOf"}
            schema = {**schema["allOf"][0], **rest}
        else:
            return schema
    return {}


def docstring(text: ToolText, returns: str | None = None) -> str:
    """A docstring that reads back as ``text``."""
    for description in (text.description, " ".join(text.description.split())):
        written = _written(description, text.arguments, returns)
        wanted = ToolText(description=description, arguments=text.arguments, returns=returns)
        if read_docstring(written) == wanted:
            return written
    # Whatever looks like a section or a rule of a docstring is written as plain words.
    words = re.sub(r"[:\-]+(?=\s|$)", " ", " ".join(text.description.split()))
    return _written(words, text.arguments)


def _written(description: str, arguments: Mapping[str, str], returns: str | None = None) -> str:
    written = description
    if arguments:
        entries = "\n".join(f"    {name}: {told}" for name, told in arguments.items())
        written += f"\n\nArgs:\n{entries}"
    if returns:
        written += f"\n\nReturns:\n    {returns}"
    return written


def _parameter_names(spec: ToolSpec) -> dict[str, str]:
    """What Python calls each argument: ``from`` and ``max-size`` are no names of parameters."""
    names: dict[str, str] = {}
    for name in spec.parameters.get("properties") or {}:
        names[name] = python_name(name, taken=["self", *names.values()])
    return names


def _text(spec: ToolSpec, names: Mapping[str, str]) -> ToolText:
    """What the docstring has to say; MCP descriptions are often whole docstrings themselves."""
    told = (
        read_docstring(spec.description) if spec.description.strip() else ToolText(description="")
    )
    properties: Any = spec.parameters.get("properties") or {}
    definitions: Any = spec.parameters.get("$defs") or {}
    arguments = {
        names[name]: _argument_text(name, resolved(schema, definitions), told.arguments.get(name))
        for name, schema in properties.items()
    }
    description = told.description or f"{spec.name.replace('_', ' ').strip().capitalize()}."
    return ToolText(description=description, arguments=arguments)


def _argument_text(name: str, schema: Schema, told: str | None) -> str:
    text = str(schema.get("description") or told or schema.get("title") or "").strip()
    text = " ".join(text.split()) or name.replace("_", " ").strip().capitalize() or name
    limits = [words.format(schema[key]) for key, words in _LIMITS.items() if key in schema]
    if limits:
        text = f"{text.rstrip('.')} ({', '.join(limits)})."
    fields: Any = schema.get("properties")
    if isinstance(fields, Mapping) and fields:
        text = f"{text.rstrip('.')}; an object with: {', '.join(map(str, fields))}."
    return text


def _signature(spec: ToolSpec, names: Mapping[str, str]) -> inspect.Signature:
    properties: Any = spec.parameters.get("properties") or {}
    definitions: Any = spec.parameters.get("$defs") or {}
    required = set(spec.parameters.get("required") or ())
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    needed: list[inspect.Parameter] = []
    optional: list[inspect.Parameter] = []
    for name, schema in properties.items():
        hint = hint_of(schema, definitions)
        if name in required:
            needed.append(inspect.Parameter(names[name], kind, annotation=hint))
        else:
            # A default of null may be written by the model; any other is the server's business.
            is_null = isinstance(schema, Mapping) and schema.get("default", LEFT_OUT) is None
            default = None if is_null else LEFT_OUT
            optional.append(inspect.Parameter(names[name], kind, annotation=hint, default=default))
    ordered = [*needed, *optional]
    if optional and [parameter.name for parameter in ordered] != list(names.values()):
        # The order of the schema is what the model sees; Python then wants keywords.
        by_name = {parameter.name: parameter for parameter in ordered}
        named_only = inspect.Parameter.KEYWORD_ONLY
        ordered = [by_name[name].replace(kind=named_only) for name in names.values()]
    returns = inspect.Signature.empty if spec.returns is None else hint_of(spec.returns)
    self = inspect.Parameter("self", kind)
    return inspect.Signature([self, *ordered], return_annotation=returns)


def _single(schema: Schema, definitions: Schema | None) -> Any:
    kind = schema.get("type")
    if kind == "array":
        if isinstance(schema.get("prefixItems"), list):
            return tuple[tuple(hint_of(part, definitions) for part in schema["prefixItems"])]
        items = schema.get("items")
        return list[hint_of(items, definitions)] if isinstance(items, Mapping) else list
    if kind == "object":
        values = schema.get("additionalProperties")
        return dict[str, hint_of(values, definitions)] if isinstance(values, Mapping) else dict
    return _PLAIN.get(kind, Any) if isinstance(kind, str) else Any


def _literal(values: Any) -> Any:
    if not isinstance(values, list) or not values:
        return Any
    if not all(type(value) in (int, float, str, bool, type(None)) for value in values):
        return Any
    if any(isinstance(value, float) for value in values):
        return float
    return Literal[tuple(values)]


def _union(hints: Sequence[Any]) -> Any:
    if Any in hints:
        return Any
    if not hints:
        return Any
    # Past the cache of Union: to it, literals with the same values in another order are equal, and
    # it would give back whichever came first; a model would be told another order.
    uncached = getattr(cast("Any", type(Union)).__getitem__, "__wrapped__", None)
    return uncached(Union, tuple(hints)) if uncached else Union[tuple(hints)]  # noqa: UP007
