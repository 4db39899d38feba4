"""Scripted Wordle players. They read the game's history, as a model does, and never its secret."""

import random
from collections.abc import Callable, Sequence

from corral.worlds.policy import Policy, PolicyAction
from corral.worlds.wordle.env import Wordle
from corral.worlds.wordle.feedback import ABSENT, GREEN, YELLOW, is_consistent
from corral.worlds.wordle.words import LETTERS, guesses, secrets

OPENER = "slate"
"""Splits the 156 secrets into 63 answers, more than all but one other accepted word, and leaves 4.5
candidates on average. With a fixed first guess a game is decided by reading the answers, which is
what there is to learn from watching; with a random one, a small model learns little else than which
words exist."""

History = Sequence[tuple[str, str]]


def candidates(history: History) -> list[str]:
    """The secrets that agree with every answer so far, sorted."""
    return [word for word in secrets() if is_consistent(word, history)]


def consistent_solver(opener: str | None = None) -> Policy:
    """A player that draws uniformly from the secrets still possible.

    Args:
        opener: A fixed first guess; None draws the first guess too, which gives more varied games.
    """

    def play(env: Wordle, last_text: str, rng: random.Random) -> PolicyAction | None:
        if env.done:
            return None
        if opener is not None and not env.history:
            return _guess(opener, env.history)
        # A secret from outside the list leaves no candidate; any accepted word that agrees will do.
        pool = candidates(env.history) or _agreeing_guesses(env.history)
        return _guess(rng.choice(pool), env.history)

    return play


def random_player(env: Wordle, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player that draws accepted words and learns nothing from the answers."""
    if env.done:
        return None
    return PolicyAction(tool="guess", arguments={"word": rng.choice(guesses())}, thought="")


POLICIES: dict[str, Callable[..., PolicyAction | None]] = {
    "random": random_player,
    "solver": consistent_solver(OPENER),
}


def what_is_known(history: History) -> str:
    """What the answers say, in one short line: fixed places, letters to place, absent letters.

    ``"_r__e, has n, no cas"`` reads: r second and e last, an n somewhere else, no c, a or s.
    """
    places = ["_"] * LETTERS
    somewhere: set[str] = set()
    absent: set[str] = set()
    for word, marks in history:
        for place, (letter, sign) in enumerate(zip(word, marks, strict=True)):
            if sign == GREEN:
                places[place] = letter
            elif sign == YELLOW:
                somewhere.add(letter)
            elif sign == ABSENT:
                absent.add(letter)
    to_place = sorted(somewhere - set(places))
    # A letter can be absent as a second copy only; it is then known from its other mark.
    ruled_out = sorted(absent - somewhere - set(places))
    parts = ["".join(places)]
    parts += [f"has {''.join(to_place)}"] if to_place else []
    parts += [f"no {''.join(ruled_out)}"] if ruled_out else []
    return ", ".join(parts)


def _agreeing_guesses(history: History) -> list[str]:
    return [word for word in guesses() if is_consistent(word, history)]


def _guess(word: str, history: History) -> PolicyAction:
    return PolicyAction(tool="guess", arguments={"word": word}, thought=what_is_known(history))
