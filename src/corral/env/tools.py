"""Find the tools of an environment class, and make tools of plain functions."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from corral.env.arguments import ArgumentChecker
from corral.env.contract import CLOSE, RESERVED_NAMES
from corral.env.schema import describe, function_source
from corral.errors import ToolDefinitionError

_LOOKED_AT = frozenset({"done", "metrics", "reward_parts"})
"""Members the contract reads as attributes; as methods they are tools, which is rarely meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """Something a model can call."""

    name: str
    """What the model calls it: the function's ``__name__``."""
    function_name: str
    """The attribute of the instance that holds it; the name again for a plain function."""
    schema: dict[str, Any]
    """What a chat template shows: ``{"type": "function", "function": {...}}``."""
    is_async: bool
    source: str
    """What messages call it: ``Class.method`` or ``function``."""
    arguments: ArgumentChecker
    function: Callable[..., Any] | None = None
    """The plain function; None for a method, which is looked up on the instance."""


def discover_tools(environment_class: type) -> tuple[Tool, ...]:
    """The tools of an environment class, in alphabetical order.

    Public functions found on the class, inherited ones included: methods, async methods and static
    methods. Never properties (they are not even evaluated), class methods, callable objects,
    ``reset``, ``get_reward``, a ``close`` without parameters, or anything with a leading
    underscore. Look at the class only after an instance was made: ``__init__`` may add methods.

    Raises:
        ToolDefinitionError: A method cannot be described to a model; the message names it.
    """
    by_function: dict[Any, Tool] = {}
    for attribute, function, is_static in _public_functions(environment_class):
        # Two attributes that hold one function (attack = hit) are one tool.
        if function not in by_function:
            by_function[function] = _method_tool(
                environment_class, attribute, function, is_static=is_static
            )
    tools = tuple(by_function.values())
    refuse_clashes(tools)
    return tools


def tool_of(function: Callable[..., Any]) -> Tool:
    """A plain function as a tool without state.

    Raises:
        ToolDefinitionError: It is no named function, or cannot be described to a model.
    """
    if not inspect.isroutine(function) or not hasattr(function, "__name__"):
        raise ToolDefinitionError(
            f"{function!r} cannot be a tool: a tool is a function with a name. Wrap it: "
            "def my_tool(...) -> str, with a docstring and type hints."
        )
    source = function_source(function)
    _refuse_name(function.__name__, source)
    return _tool(function, source, function.__name__, is_plain=True)


def refuse_clashes(tools: Sequence[Tool]) -> None:
    """Raise where two tools would answer to the same name."""
    seen: dict[str, Tool] = {}
    for tool in tools:
        other = seen.setdefault(tool.name, tool)
        if other is not tool:
            raise ToolDefinitionError(
                f"{other.source} and {tool.source} are both called {tool.name!r}, so a model "
                "cannot tell them apart. Rename one of them (a decorator without "
                "functools.wraps gives all its functions the same name)."
            )


def _public_functions(environment_class: type) -> list[tuple[str, Callable[..., Any], bool]]:
    found: list[tuple[str, Callable[..., Any], bool]] = []
    for attribute, member in inspect.getmembers_static(environment_class):
        if attribute.startswith("_") or attribute in RESERVED_NAMES:
            continue
        is_static = isinstance(member, staticmethod)
        function: Any = member.__func__ if is_static else member
        if not inspect.isfunction(function) or _is_lifecycle_close(attribute, function, is_static):
            continue
        found.append((attribute, function, is_static))
    return found


def _is_lifecycle_close(attribute: str, function: Callable[..., Any], is_static: bool) -> bool:
    if attribute != CLOSE:
        return False
    return len(inspect.signature(function).parameters) <= (0 if is_static else 1)


def _method_tool(
    environment_class: type, attribute: str, function: Callable[..., Any], *, is_static: bool
) -> Tool:
    source = f"{environment_class.__name__}.{attribute}"
    _refuse_name(function.__name__, source)
    docstring = inspect.getdoc(function) or _inherited_docstring(environment_class, attribute)
    if docstring is None and attribute in _LOOKED_AT:
        raise ToolDefinitionError(
            f"{source} is a method, so it would be a tool, and has no docstring. Put @property "
            f"above it (or set self.{attribute}) to report it to Corral."
        )
    namespace = {
        name: value
        for base in environment_class.__mro__[-2::-1]
        for name, value in vars(base).items()
    }
    return _tool(
        function,
        source,
        attribute,
        skips_self=not is_static,
        docstring=docstring,
        namespace=namespace,
    )


def _tool(
    function: Callable[..., Any],
    source: str,
    attribute: str,
    *,
    skips_self: bool = False,
    docstring: str | None = None,
    namespace: dict[str, Any] | None = None,
    is_plain: bool = False,
) -> Tool:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDefinitionError(
            f"{source} is a generator, but a tool answers once. Return the text instead of "
            "yielding it."
        )
    description = describe(
        function,
        source=source,
        skips_self=skips_self,
        docstring=docstring,
        namespace=namespace,
    )
    return Tool(
        name=function.__name__,
        function_name=attribute,
        schema=description.schema,
        is_async=inspect.iscoroutinefunction(function),
        source=source,
        arguments=ArgumentChecker(function.__name__, description.parameters, source=source),
        function=function if is_plain else None,
    )


def _refuse_name(name: str, source: str) -> None:
    if name in RESERVED_NAMES:
        raise ToolDefinitionError(
            f"{source} would be a tool called {name!r}, a name Corral itself calls. Rename it."
        )
    if not name.isidentifier() or name.startswith("_"):
        raise ToolDefinitionError(
            f"{source} would be a tool called {name!r}, which is no public name. Define it with "
            "def and a public name; a decorator keeps the name with functools.wraps."
        )


def _inherited_docstring(environment_class: type, attribute: str) -> str | None:
    for base in environment_class.__mro__:
        docstring = inspect.getdoc(vars(base).get(attribute)) if attribute in vars(base) else None
        if docstring:
            return docstring
    return None
