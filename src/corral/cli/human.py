"""A person at the terminal as a player."""

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from corral.chat.render import plain_content
from corral.cli.output import say
from corral.env import prepare
from corral.worlds import World
from corral.worlds.play import opening
from corral.worlds.policy import Policy, PolicyAction
from corral.worlds.world import Row


def human_policy(world: World, row: Row) -> Policy:
    """Asks for a tool and its arguments each turn; an empty answer or end of input stops."""
    schemas = [schema["function"] for schema in prepare(world.factory).tools.schemas]
    has_begun = False

    def choose(env: Any, last_text: str, rng: Random) -> PolicyAction | None:
        nonlocal has_begun
        if not has_begun:
            show_opening(row, last_text or None)
        elif last_text:
            say(last_text)
        has_begun = True
        schema = _choose_tool(schemas)
        if schema is None:
            return None
        arguments = _ask_arguments(schema)
        return None if arguments is None else PolicyAction(tool=schema["name"], arguments=arguments)

    return choose


def show_opening(row: Row, observation: Any) -> None:
    """Print what a model reads first, glued as it is for a model."""
    messages = opening(row, observation)
    for message in messages:
        text = plain_content(message.get("content"))
        role = f"{message['role']}: " if len(messages) > 1 else ""
        say(f"{role}{text if isinstance(text, str) else '(not text)'}")


def show_text(text: Any) -> None:
    """Print what a player is shown, if it is text."""
    if isinstance(text, str) and text:
        say(text)


def show_turn(turn: Any) -> None:
    """Print one call of a scripted player and its answer."""
    say(f"> {turn.action.tool}({json.dumps(turn.action.arguments)})")
    say(str(turn.content))


def _choose_tool(schemas: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    if len(schemas) == 1:
        return schemas[0]
    names = [schema["name"] for schema in schemas]
    while True:
        answer = _ask(f"tool ({', '.join(names)})")
        if not answer:
            return None
        if answer in names:
            return schemas[names.index(answer)]
        say(f"There is no tool {answer!r}.")


def _ask_arguments(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    properties: Mapping[str, Any] = schema["parameters"]["properties"]
    required = schema["parameters"].get("required", [])
    arguments: dict[str, Any] = {}
    for name, details in properties.items():
        answer = _ask(_question(name, details))
        if answer:
            # The call layer coerces text to the argument's type, as it does for a model.
            arguments[name] = answer
        elif name in required:
            return None
    return arguments


def _question(name: str, details: Mapping[str, Any]) -> str:
    description = str(details.get("description", "")).rstrip(".")
    return f"{name} ({description})" if description else name


def _ask(question: str) -> str:
    say(f"{question} > ", end="", style="bold")
    try:
        # Without a prompt of its own: that would go to standard output, among the data.
        return input().strip()
    except EOFError:
        say("")
        return ""
