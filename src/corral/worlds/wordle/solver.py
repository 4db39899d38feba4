"""Scripted Wordle players. They read the game's history, as a model does, and never its secret."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from corral.worlds.policy import Policy, PolicyAction
from corral.worlds.wordle.env import Wordle
from corral.worlds.wordle.feedback import ABSENT, GREEN, YELLOW, is_consistent, mark
from corral.worlds.wordle.words import LETTERS, guesses, secrets

OPENER = "slate"
"""Splits the 156 secrets into 63 answers, more than all but one other accepted word, and leaves 4.5
candidates on average. With a fixed first guess a game is decided by reading the answers, which is
what there is to learn from watching; with a random one, a small model learns little else than which
words exist."""

SLIP_RATE = 0.55
"""More often than not, so that a greedy imitator slips too."""

GUESSES_WITHOUT_SLIPS = 2

History = Sequence[tuple[str, str]]


def candidates(history: History) -> list[str]:
    """The secrets that agree with every answer so far, sorted."""
    return [word for word in secrets() if is_consistent(word, history)]


def solver(opener: str = OPENER) -> Policy:
    """A player that guesses only secrets still possible: the one that splits the others best.

    It always plays the same way, so its games form one tree of answers with a leaf a secret.
    """

    def play(env: Wordle, last_text: str, rng: random.Random) -> PolicyAction | None:
        if env.done:
            return None
        if not env.history:
            return _guess(opener, env.history)
        # A secret from outside the list leaves no candidate; any accepted word that agrees will do.
        pool = candidates(env.history) or _agreeing_guesses(env.history)
        return _guess(best_split(tuple(pool)), env.history)

    return play


def careless_solver(slip_rate: float = SLIP_RATE) -> Policy:
    """The solver with a bad habit: it loses track of what it has said.

    From its third guess on it repeats its last guess in ``slip_rate`` of its turns, which the game
    refuses; two such slips in a row lose the game. Who imitates it learns what to guess and the
    habit alike; only the reward tells them apart.
    """
    knowing = solver()

    def play(env: Wordle, last_text: str, rng: random.Random) -> PolicyAction | None:
        is_tempted = len(env.history) >= GUESSES_WITHOUT_SLIPS and not env.done
        if is_tempted and rng.random() < slip_rate:
            return _guess(env.history[-1][0], env.history)
        return knowing(env, last_text, rng)

    return play


@lru_cache(maxsize=4096)
def best_split(pool: tuple[str, ...]) -> str:
    """The word of the pool that leaves the fewest of its words possible, on average."""

    def left(word: str) -> int:
        answers = Counter(mark(secret, word) for secret in pool)
        return sum(count * count for count in answers.values())

    return min(pool, key=left)


def random_player(env: Wordle, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player that draws accepted words and learns nothing from the answers."""
    if env.done:
        return None
    return PolicyAction(tool="guess", arguments={"word": rng.choice(guesses())}, thought="")


POLICIES: dict[str, Callable[..., PolicyAction | None]] = {
    "random": random_player,
    "solver": solver(),
    "careless": careless_solver(),
}


def what_is_known(history: History) -> str:
    """What the answers say, in one short line: fixed places, letters to place, absent letters.

    ``"_r__e +n -acs"`` reads: r second and e last, an n somewhere else, no a, c or s. Empty before
    the first answer.
    """
    if not history:
        return ""
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
    parts += [f"+{''.join(to_place)}"] if to_place else []
    parts += [f"-{''.join(ruled_out)}"] if ruled_out else []
    return " ".join(parts)


def _agreeing_guesses(history: History) -> list[str]:
    return [word for word in guesses() if is_consistent(word, history)]


def _guess(word: str, history: History) -> PolicyAction:
    return PolicyAction(tool="guess", arguments={"word": word}, thought=what_is_known(history))
