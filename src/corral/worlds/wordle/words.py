"""The two word lists: what can be secret, and what is accepted as a guess."""

from functools import cache
from importlib.resources import files

LETTERS = 5


@cache
def secrets() -> tuple[str, ...]:
    """The words a game can hide, sorted; every one is also accepted as a guess."""
    return _read("secrets.txt")


@cache
def accepted() -> frozenset[str]:
    """The words a game takes as guesses."""
    return frozenset(guesses())


@cache
def guesses() -> tuple[str, ...]:
    """The accepted guesses, sorted, for whoever draws one with a seed."""
    return _read("guesses.txt")


def _read(file: str) -> tuple[str, ...]:
    text = files("corral.worlds.wordle").joinpath("words", file).read_text(encoding="ascii")
    return tuple(text.split())
