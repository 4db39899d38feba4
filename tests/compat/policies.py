"""What the model says in each script: a table of turns instead of a model.

A policy gets the text of the prompt and the member (the place in its group), and returns the turns
in order. Members act differently, so that rewards and advantages differ.
"""

import json
import re
from collections.abc import Callable
from typing import Any

Policy = Callable[[str, int], list[str]]


def call(name: str, **arguments: Any) -> str:
    """A tool call as Qwen's template writes it."""
    request = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{request}\n</tool_call>"


def echo(prompt: str, member: int) -> list[str]:
    word = found(r"Say (\w+)\.", prompt)
    return [
        [call("echo", message=word), "Done."],
        ["I would rather not."],
        ["Well. " + call("echo", message=word * 3), call("echo", message="again"), "Ö, done."],
        [call("shout", message=word), call("echo", message=""), ""],
    ][member]


def stateful_game(prompt: str, member: int) -> list[str]:
    secret = int(found(r"between 1 and (\d+)", prompt)) // 2
    right = call("guess", number=secret)
    return [
        [right, "Thanks."],
        [
            call("guess", number=1),
            call("guess", number=9),
            right,
            call("guess", number=2),
            "Thanks!",
        ],
        # Beyond the limit on rounds: the last call is never executed.
        [call("guess", number=1), call("history"), *[call("guess", number=n) for n in (2, 3, 4)]],
        [right + "\n" + right, "Oh."],
    ][member]


def several_environments(prompt: str, member: int) -> list[str]:
    if "Spell" in prompt:
        word = found(r"Spell (\w+) backwards", prompt)
        spelled = [word[::-1], word, word[::-1].upper(), word[::-1]][member]
        first = [call("add", number=3)] if member == 3 else []
        return [*first, call("spell", letters=spelled), "There."]
    steps = [[10], [4, 6], [20], []][member]
    return [*[call("add", number=step) for step in steps], f"{sum(steps)} it is."]


def async_tools(prompt: str, member: int) -> list[str]:
    city = found(r"lives in (\w+)\?", prompt)
    both = call("population", city=city) + "\n" + call("distance", start=city)
    number = {"Bonn": "336000", "Köln": "1087000"}[city]
    return [
        [call("population", city=city), f"It is {number}."],
        [both, call("add", a=1.5, b=2), f"{number} people."],
        [call("population", city="Ulm"), "I don't know."],
        [call("distance", start=city, end="Ulm") + call("population", city=city), "Hm."],
    ][member]


def no_dataset(prompt: str, member: int) -> list[str]:
    goal = int(found(r"Count to (\d+)", prompt))
    turns = [call("increment", step=1) for _ in range(goal)]
    return [
        [*turns, "Counted."],
        [call("increment"), "One."],
        ["No."],
        [*turns, *turns[:1], "Oh."],
    ][member]


def dict_of_factories(prompt: str, member: int) -> list[str]:
    goal = int(found(r"Task (\d+)\.", prompt))
    if "You start at 1" in prompt:
        step = [goal - 1, goal, 0, 5][member]
        return [call("increment", step=step), "Ready."]
    notes = [call("note", text=f"note {n}") for n in range(member)]
    # The tools of the other environment are not there.
    other = [call("increment", step=1)] if member == 1 else []
    return [*notes, *other, call("nothing"), "Noted."]


def found(pattern: str, prompt: str) -> str:
    match = re.search(pattern, prompt)
    assert match is not None, prompt
    return match[1]


POLICIES: dict[str, Policy] = {
    policy.__name__: policy
    for policy in (
        echo,
        stateful_game,
        several_environments,
        async_tools,
        no_dataset,
        dict_of_factories,
    )
}
