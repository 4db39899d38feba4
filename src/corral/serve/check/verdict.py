"""What a check says: passed, failed or skipped, and why."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corral.serve.check.target import Target

_SHOWN_CHARACTERS = 400


class Status(StrEnum):
    """The three verdicts."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class CheckFailed(Exception):
    """The server did something else than a peer relies on."""

    def __init__(self, *, sent: Any, came: Any, expected: str) -> None:
        super().__init__(f"sent {shorten(sent)}; came {shorten(came)}; expected {expected}")
        self.sent, self.came, self.expected = shorten(sent), shorten(came), expected


class CheckSkipped(Exception):
    """What is served cannot show this; the message says what would be needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One check's result."""

    id: str
    items: tuple[int, ...]
    """Items of OpenEnv's conformance checklist that this check belongs to."""
    title: str
    status: Status
    reason: str = ""
    """Why it was skipped."""
    sent: str = ""
    came: str = ""
    expected: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing a peer relies on, and the function that looks whether it is so.

    The function returns if it is, and raises `CheckFailed` or `CheckSkipped` otherwise.
    """

    id: str
    items: tuple[int, ...]
    title: str
    run: Callable[["Target"], Awaitable[None]]
    is_thorough: bool = False
    """Takes a minute, or moves megabytes."""


def make_check(
    run: Callable[["Target"], Awaitable[None]], *items: int, is_thorough: bool = False
) -> Check:
    """A check named like its function and titled with the first line of its docstring."""
    title = (run.__doc__ or "").strip().splitlines()[0].rstrip(".")
    name = run.__name__.replace("_", "-")
    return Check(id=name, items=items, title=title, run=run, is_thorough=is_thorough)


def require(holds: bool, *, sent: Any, came: Any, expected: str) -> None:
    """Fail unless ``holds``."""
    if not holds:
        raise CheckFailed(sent=sent, came=came, expected=expected)


def shorten(value: Any) -> str:
    """A value as text of bounded length."""
    text = str(value)
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]}… ({len(text)} characters)"
