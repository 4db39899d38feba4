"""Scripted players: what they are, and the one that can play any environment."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from corral.env.tools import discover_tools

RANDOM_INT_MAX = 20
RANDOM_TEXT_LETTERS = 5
RANDOM_LIST_ITEMS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyAction:
    """One tool call of a scripted player."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    thought: str = ""
    """Brief reasoning for demonstrations; empty when there is nothing to say."""


Policy = Callable[[Any, str, random.Random], PolicyAction | None]
"""``(environment, last text shown, random stream) -> next call``, or None to stop playing.

A policy may read what the environment has shown (its public state) and draws only from the stream.
"""


def random_caller(schemas: Sequence[Mapping[str, Any]]) -> Policy:
    """A player for any environment: a random tool with arguments that fit its schema.

    Integers are drawn from 0 to 20 and strings are five random letters; a world whose arguments
    mean more than that brings a ``random`` policy of its own.
    """
    functions = [schema["function"] for schema in schemas]

    def play(env: Any, last_text: str, rng: random.Random) -> PolicyAction | None:
        if not functions or getattr(env, "done", False) is True:
            return None
        function = rng.choice(functions)
        properties = function["parameters"].get("properties", {})
        required = function["parameters"].get("required", [])
        arguments = {name: _draw(properties[name], rng) for name in properties if name in required}
        return PolicyAction(tool=function["name"], arguments=arguments)

    return play


def any_caller(env: Any, last_text: str, rng: random.Random) -> PolicyAction | None:
    """:func:`random_caller` for worlds whose tools are known only once an environment is there."""
    return _caller_of(type(env))(env, last_text, rng)


@cache
def _caller_of(environment_class: type) -> Policy:
    return random_caller([tool.schema for tool in discover_tools(environment_class)])


def _draw(schema: Mapping[str, Any], rng: random.Random) -> Any:
    if schema.get("enum"):
        return rng.choice(list(schema["enum"]))
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = rng.choice(kind)
    match kind:
        case "integer":
            return rng.randint(0, RANDOM_INT_MAX)
        case "number":
            return rng.uniform(0, RANDOM_INT_MAX)
        case "boolean":
            return rng.random() < 0.5
        case "array":
            items = schema.get("items", {})
            return [_draw(items, rng) for _ in range(rng.randint(0, RANDOM_LIST_ITEMS))]
        case "object":
            return {}
        case "null":
            return None
        case _:
            letters = "abcdefghijklmnopqrstuvwxyz"
            return "".join(rng.choice(letters) for _ in range(RANDOM_TEXT_LETTERS))
