"""JSON as a model writes it, read so that no two readers could differ about what it means."""

import json
import math
from collections.abc import Callable
from typing import Any

Refuse = Callable[[str], Exception]
"""The error for what stands there: a clause that names it and what is wrong with it."""


def strict_decoder(refuse: Refuse) -> json.JSONDecoder:
    """A decoder that takes neither a key that comes twice, nor a number that is none."""

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return unique(pairs, refuse)

    def constant(name: str) -> Any:
        raise refuse(f"{name}, which is not a JSON number")

    def finite(text: str) -> float:
        number = float(text)
        if not math.isfinite(number):
            raise refuse(f"the number {text:.20}, which is too large")
        return number

    return json.JSONDecoder(
        object_pairs_hook=object_of, parse_constant=constant, parse_float=finite
    )


def unique(pairs: list[tuple[str, Any]], refuse: Refuse) -> dict[str, Any]:
    """The pairs as a mapping; a key that comes twice is refused."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise refuse(f"the key {name!r:.80} more than once")
        fields[name] = value
    return fields
