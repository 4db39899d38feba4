"""Random players: they play one of the moves in brackets that a text offers."""

import random
import re
from collections.abc import Callable
from typing import Any

from corral.worlds.policy import PolicyAction

Opponent = Callable[[str, random.Random], str]
"""``(what the seat was shown, random stream) -> its move``."""

_MOVE = re.compile(r"\[([^\[\]\n]{1,20})\]")
_SPEAKERS = re.compile(r"^\[(?:GAME|Player[^\]]*)\] ?", re.MULTILINE)


def random_move(shown: str, rng: random.Random) -> str:
    """One of the moves in the last line that has any, in its brackets.

    A game that shows none gets a word, which few take for a move.
    """
    text = _SPEAKERS.sub("", shown)
    for line in reversed(text.splitlines()):
        moves = _MOVE.findall(line)
        if moves:
            return f"[{rng.choice(moves)}]"
    return "[pass]"


def random_player(env: Any, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player for any game that plays as :func:`random_move` does."""
    if env.done:
        return None
    return PolicyAction(tool="play", arguments={"move": random_move(last_text, rng)})
