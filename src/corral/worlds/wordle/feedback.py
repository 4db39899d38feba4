"""What a guess reveals: one mark a letter.

``G`` the letter stands there, ``Y`` it stands elsewhere, ``X`` it is absent. Greens are given
first; yellows, from left to right, then use up the letters of the secret that are left, so a letter
never gets more marks than it has occurrences.
"""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

GREEN, YELLOW, ABSENT = "G", "Y", "X"

MARKS_KEPT = 2**15
"""Room for every pair of secrets: a solver asks for the same marks in game after game."""


@lru_cache(maxsize=MARKS_KEPT)
def mark(secret: str, guess: str) -> str:
    """The marks of ``guess`` as one string, such as ``"GXYXX"``."""
    left = Counter(s for s, g in zip(secret, guess, strict=True) if s != g)
    marks: list[str] = []
    for there, letter in zip(secret, guess, strict=True):
        if there == letter:
            marks.append(GREEN)
        elif left[letter] > 0:
            left[letter] -= 1
            marks.append(YELLOW)
        else:
            marks.append(ABSENT)
    return "".join(marks)


def render(guess: str, marks: str) -> str:
    """The two lines a player reads: letters above marks, spaced."""
    return f"{' '.join(guess.upper())}\n{' '.join(marks)}"


def is_consistent(candidate: str, history: Iterable[tuple[str, str]]) -> bool:
    """Whether ``candidate``, were it the secret, would have given every answer so far."""
    return all(mark(candidate, guess) == marks for guess, marks in history)
