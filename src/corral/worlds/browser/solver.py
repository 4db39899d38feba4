"""Scripted players of the browser. They read what the page shows, and nothing of the environment.

The environment may be in another process, or on a server.
"""

import ast
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from corral.worlds.policy import Policy, PolicyAction

_LINE = re.compile(
    r"""^\s*\[(?P<bid>\w+)\]\s(?P<role>\w+)\s
        (?P<name>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?P<rest>.*)$""",
    re.VERBOSE,
)
_TEXT = re.compile(r"""\s*StaticText ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
_VALUE = re.compile(r"""value=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
_WRITABLE = ("textbox", "combobox", "searchbox")
_KEYS = ("Enter", "Tab", "ArrowDown", "Escape", "a")


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """A line of the page that has a number."""

    bid: str
    role: str
    name: str
    value: str
    """What a field holds; empty for what is none."""
    is_checked: bool

    @property
    def is_writable(self) -> bool:
        """Whether it can be filled."""
        return self.role in _WRITABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a player reads."""

    goal: str
    elements: tuple[Element, ...]

    @property
    def quoted(self) -> list[str]:
        """What stands in quotes in the goal."""
        return re.findall(r'"([^"]*)"', self.goal)

    def named(self, name: str, *roles: str) -> Element:
        """The first element of that name, whatever its case, and of those roles."""
        return next(
            one
            for one in self.elements
            if one.name.strip().lower() == name.lower() and (not roles or one.role in roles)
        )

    def of_role(self, *roles: str) -> list[Element]:
        """All elements of those roles."""
        return [one for one in self.elements if one.role in roles]


def read(text: str) -> Seen:
    """The goal and the elements in what the environment shows."""
    goal = re.search(r"^Goal: (.*)$", text, re.MULTILINE)
    lines = text.splitlines()
    found = [
        Element(
            bid=line["bid"],
            role=line["role"],
            name=_unquoted(line["name"]) or _text_below(below),
            value=_value(line["rest"]),
            is_checked="checked='true'" in line["rest"],
        )
        for above, below in pairwise([*lines, ""])
        if (line := _LINE.match(above))
    ]
    return Seen(goal=goal[1] if goal else "", elements=tuple(found))


def random_player(env: Any, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player that clicks and fills at random what the page shows."""
    if env.done:
        return None
    seen = read(last_text)
    if not seen.elements:
        return PolicyAction(tool="noop")
    if rng.random() < 0.1:
        return PolicyAction(tool="send_keys", arguments={"key": rng.choice(_KEYS)})
    element = rng.choice(seen.elements)
    if element.is_writable and rng.random() < 0.5:
        words = re.findall(r"\w+", seen.goal) or ["word"]
        return _fill(element, rng.choice(words))
    return _click(element)


def solver(env: Any, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player that knows how the tasks of ``TASKS`` are done; it does nothing on others."""
    if env.done:
        return None
    seen = read(last_text)
    for pattern, play in _RULES:
        if re.search(pattern, seen.goal):
            try:
                return play(seen)
            except StopIteration:  # what it looks for is not there (yet)
                return PolicyAction(tool="noop")
    return PolicyAction(tool="noop")


def _click(element: Element) -> PolicyAction:
    return PolicyAction(tool="click", arguments={"bid": element.bid}, thought=element.name)


def _fill(element: Element, text: str) -> PolicyAction:
    arguments = {"bid": element.bid, "text": text}
    return PolicyAction(tool="fill", arguments=arguments, thought=element.name)


def _only_button(seen: Seen) -> PolicyAction:
    return _click(seen.of_role("button")[0])


def _button(seen: Seen) -> PolicyAction:
    named = re.search(r"[Cc]lick (?:the )?button (\w+)", seen.goal)
    return _click(seen.named(named[1] if named else seen.quoted[0], "button"))


def _close_dialog(seen: Seen) -> PolicyAction:
    return _click(seen.named("Close", "button"))


def _button_of_dialog(seen: Seen) -> PolicyAction:
    name = seen.quoted[0]
    return _close_dialog(seen) if name == "x" else _click(seen.named(name, "button"))


def _focus(seen: Seen) -> PolicyAction:
    place = re.search(r"(\d)[a-z]{2} input", seen.goal)
    return _click(seen.of_role(*_WRITABLE)[int(place[1]) - 1 if place else 0])


def _fill_fields(seen: Seen, texts: Sequence[str]) -> PolicyAction:
    """Fill what is not filled yet, then press the button."""
    for field, text in zip(seen.of_role(*_WRITABLE), texts, strict=False):
        if field.value not in (text, "•" * len(text)):  # passwords are shown as dots
            return _fill(field, text)
    return _only_button(seen)


def _enter_text(seen: Seen) -> PolicyAction:
    return _fill_fields(seen, seen.quoted)


def _enter_twice(seen: Seen) -> PolicyAction:
    return _fill_fields(seen, seen.quoted * 2)


def _link(seen: Seen) -> PolicyAction:
    return _click(seen.named(seen.quoted[0]))


def _tab(seen: Seen) -> PolicyAction:
    number = seen.goal.rpartition("#")[2].rstrip(".")
    return _click(seen.named(f"Tab #{number}", "tab", "link"))


def _select_and_submit(seen: Seen) -> PolicyAction:
    """Choose the named boxes, radio buttons or list entries, then submit."""
    listed = re.sub(r"^Select (.*?)(?: from the list)? and click Submit\.?$", r"\1", seen.goal)
    lists = [one for one in seen.of_role("combobox") if one.value != listed]
    if lists:
        return _fill(lists[0], listed)
    wanted = [] if listed == "nothing" else listed.split(", ")
    if not seen.of_role("combobox"):
        for name in wanted:
            box = seen.named(name, "checkbox", "radio")
            if not box.is_checked:
                return _click(box)
    return _click(seen.named("Submit", "button"))


_RULES: tuple[tuple[str, Callable[[Seen], PolicyAction]], ...] = (
    (r"^Click the button\.", _only_button),
    (r"^Click the button in the dialog box", _button_of_dialog),
    (r"Click (the )?button \w+", _button),
    (r'Click on the ".*" button', _button),
    (r"^Close the dialog box", _close_dialog),
    (r"^Focus into the", _focus),
    (r"^Enter the password", _enter_twice),
    (r"^Enter the username|^Enter .* into the text field", _enter_text),
    (r"^Click on the link", _link),
    (r"^Click on Tab", _tab),
    (r"^Select .* and click Submit", _select_and_submit),
)

TASKS = (
    "click-test",
    "click-test-2",
    "click-test-transfer",
    "click-button",
    "click-dialog",
    "click-dialog-2",
    "click-link",
    "click-tab",
    "click-option",
    "click-checkboxes",
    "choose-list",
    "focus-text",
    "focus-text-2",
    "enter-text",
    "enter-text-dynamic",
    "enter-password",
    "login-user",
)
"""What the solver knows, and what is played unless other tasks are named."""

POLICIES: dict[str, Policy] = {"random": random_player, "solver": solver}


def _text_below(line: str) -> str:
    """The text of an element without a name, which stands in the line after it."""
    found = _TEXT.match(line)
    return _unquoted(found[1]) if found else ""


def _unquoted(literal: str) -> str:
    return str(ast.literal_eval(literal))


def _value(rest: str) -> str:
    found = _VALUE.search(rest)
    return _unquoted(found[1]) if found else ""
