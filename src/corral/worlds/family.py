"""Worlds whose names begin alike, such as ``gymnasium:CartPole-v1``."""

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from corral.errors import UsageError
from corral.worlds.needs import Needs
from corral.worlds.world import World

_FORM = re.compile(r"(?P<name>[^()]+)(?:\((?P<options>.*)\))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A door to the worlds of another library, each found as ``family:NAME``."""

    name: str
    """What stands before the colon."""
    summary: str
    """One sentence for ``corral list``."""
    world: Callable[[str], World]
    """The world of what stands behind the colon. Where the library is not installed it still tells
    tasks and players; a name that the library does not know is then found out when it is played."""
    needs: Needs | None = None
    """What the worlds stand on; they share one virtual environment."""

    @property
    def home(self) -> str:
        """What its virtual environment is called."""
        return self.name


def read_name(text: str) -> tuple[str, dict[str, Any]]:
    """A name and its options: ``"lake(size=4)"`` is ``("lake", {"size": 4})``.

    Raises:
        UsageError: What is in the brackets are no options with plain values.
    """
    found = _FORM.fullmatch(text.strip())
    try:
        if found is None:
            raise ValueError("brackets")
        return found["name"].strip(), _options(found["options"] or "")
    except (SyntaxError, ValueError) as error:
        raise UsageError(
            f"{text!r} cannot be read. Write NAME or NAME(option=value, ...), with values as in "
            "Python: numbers, 'text', True, None, lists."
        ) from error


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence that names what was perhaps meant, after a space; empty if nothing was."""
    near = get_close_matches(name, known, n=3)
    return f" Did you mean {', '.join(near)}?" if near else ""


def _options(text: str) -> dict[str, Any]:
    call = ast.parse(f"_({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    if call.args:
        raise ValueError("an option without a name")
    options: dict[str, Any] = {}
    for word in call.keywords:
        if word.arg is None:
            raise ValueError("**")
        options[word.arg] = ast.literal_eval(word.value)
    return options
