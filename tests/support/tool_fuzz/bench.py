"""An environment with tools of every kind, which writes down all that is done to it."""

import enum
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

DEEDS: ContextVar["Deeds"] = ContextVar("DEEDS")
"""Those of the episode that runs; the engine sets it, tools and their threads inherit it."""

PLACES: dict[int, "Deeds"] = {}
"""Those of all episodes, by the place in their row: ``reset`` runs before the engine."""

RAISED = "boom"
"""What the error of a tool that was executed, and failed, begins with."""


@dataclass
class Deeds:
    """What was executed in one episode, in order."""

    turn: int = -1
    executed: list["Deed"] = field(default_factory=list["Deed"])
    forbidden: list[str] = field(default_factory=list[str])
    """Members that no model may reach and that were called."""
    resets: int = 0
    scored: int = 0


@dataclass(frozen=True)
class Deed:
    """One execution."""

    turn: int
    name: str
    received: dict[str, Any]


def did(name: str, /, **received: Any) -> str:
    """Write an execution down; the answer names its number."""
    deeds = DEEDS.get()
    deeds.executed.append(Deed(deeds.turn, name, received))
    return f"did {len(deeds.executed) - 1}"


class Colour(enum.Enum):
    """Choices as an enum."""

    RED = "red"
    TWO = 2


class Bench:
    """Tools of every kind beside everything that must stay out of reach."""

    registry: dict[str, int] = {}
    helper = print

    def __init__(self) -> None:
        self.secret = "s3cret"
        self.place = -1

    def reset(self, place: int, **row: Any) -> None:
        self.place = place
        PLACES[place].resets += 1

    def get_reward(self) -> float:
        PLACES[self.place].scored += 1
        return 0.0

    def close(self) -> None: ...

    def _hidden(self) -> str:
        """Hide."""
        DEEDS.get().forbidden.append("_hidden")
        return self.secret

    @property
    def looked(self) -> str:
        """Look."""
        DEEDS.get().forbidden.append("looked")
        return self.secret

    @classmethod
    def made(cls) -> str:
        """Make."""
        DEEDS.get().forbidden.append("made")
        return "made"

    def integer(self, n: int) -> str:
        """Take a whole number.

        Args:
            n: The number.
        """
        return did("integer", n=n)

    def number(self, x: float) -> str:
        """Take a number.

        Args:
            x: The number.
        """
        return did("number", x=x)

    def text(self, name: str) -> str:
        """Take text.

        Args:
            name: The text.
        """
        return did("text", name=name)

    def flag(self, on: bool) -> str:
        """Take a flag.

        Args:
            on: The flag.
        """
        return did("flag", on=on)

    def items(self, xs: list[int]) -> str:
        """Take numbers.

        Args:
            xs: The numbers.
        """
        return did("items", xs=xs)

    def table(self, rows: dict[str, int]) -> str:
        """Take a table.

        Args:
            rows: The table.
        """
        return did("table", rows=rows)

    def choice(self, side: Literal["left", "right"]) -> str:
        """Take a side.

        Args:
            side: The side.
        """
        return did("choice", side=side)

    def colour(self, colour: Colour) -> str:
        """Take a colour.

        Args:
            colour: The colour.
        """
        return did("colour", colour=colour)

    def optional(self, n: int | None = None) -> str:
        """Take a number or nothing.

        Args:
            n: The number.
        """
        return did("optional", n=n)

    def two(self, name: str, other: str = "o") -> str:
        """Take two texts.

        Args:
            name: The one.
            other: The other.
        """
        return did("two", name=name, other=other)

    def anything(self, value: Any) -> str:
        """Take anything.

        Args:
            value: The thing.
        """
        return did("anything", value=value)

    def nothing(self) -> str:
        """Take nothing."""
        return did("nothing")

    def raises(self, name: str) -> str:
        """Fail.

        Args:
            name: The text.
        """
        raise ValueError(f"{RAISED} {did('raises', name=name)}")

    async def waits(self, name: str) -> str:
        """Take text on the event loop.

        Args:
            name: The text.
        """
        return did("waits", name=name)

    @staticmethod
    def still(n: int) -> str:
        """Take a whole number without the instance.

        Args:
            n: The number.
        """
        return did("still", n=n)


def plain(name: str) -> str:
    """Take text outside the environment.

    Args:
        name: The text.
    """
    return did("plain", name=name)


KINDS: dict[str, dict[str, str]] = {
    "integer": {"n": "int"},
    "number": {"x": "float"},
    "text": {"name": "str"},
    "flag": {"on": "bool"},
    "items": {"xs": "list"},
    "table": {"rows": "dict"},
    "choice": {"side": "choice"},
    "colour": {"colour": "enum"},
    "optional": {"n": "int?"},
    "two": {"name": "str", "other": "str"},
    "anything": {"value": "any"},
    "nothing": {},
    "raises": {"name": "str"},
    "waits": {"name": "str"},
    "still": {"n": "int"},
    "plain": {"name": "str"},
}
"""What each tool takes; the only names that may ever be executed."""
