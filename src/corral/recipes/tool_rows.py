"""Whether rows to learn from list the tools that a run's environments show when they are played."""

from collections.abc import Mapping, Sequence
from typing import Any

from corral.training.raw_rows import RowShape

Schemas = Sequence[Mapping[str, Any]]


def other_tools(rows: Sequence[RowShape], environments: Sequence[Schemas]) -> str | None:
    """Say how conversations list other tools than any of the environments; None: they do not.

    A model that was warmed up on other schemas has never read what it is shown when it plays.
    """
    talks = [row for row in rows if row.is_conversational]
    kinds = [_functions(schemas) for schemas in environments]
    if not (talks and any(kinds)):
        return None
    given = [_functions(row.tools or ()) for row in talks]
    shown = [list(functions.items()) for functions in kinds]
    unlike = [functions for functions in given if list(functions.items()) not in shown]
    if not unlike:
        return None
    return (
        f"{len(unlike)} of {len(talks)} conversations list other tools than the environment shows "
        f"when it is played ({_difference(unlike[0], kinds[0])}), so the model learns to read what "
        "it will not be shown. The environment's are corral.env.prepare(Class).tools.schemas."
    )


def _functions(schemas: Schemas) -> dict[str, Mapping[str, Any]]:
    functions = (schema.get("function", schema) for schema in schemas)
    return {str(function.get("name")): function for function in functions}


def _difference(
    given: Mapping[str, Mapping[str, Any]], wanted: Mapping[str, Mapping[str, Any]]
) -> str:
    """The first thing that differs."""
    if not given:
        return "they list none"
    for name in [*wanted, *given]:
        if name not in given:
            return f"they lack {name!r}"
        if name not in wanted:
            return f"the environment has no {name!r}"
        one, other = given[name], wanted[name]
        parts = [part for part in {**other, **one} if one.get(part) != other.get(part)]
        if parts:
            return f"{name!r} differs in {', '.join(map(repr, parts))}"
    return "their order differs"
