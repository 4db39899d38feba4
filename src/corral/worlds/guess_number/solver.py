"""Scripted players of guess-the-number. They read the answers given, never the secret."""

import random

from corral.worlds.guess_number.env import GuessNumber
from corral.worlds.policy import Policy, PolicyAction


def random_player(env: GuessNumber, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player that draws from the whole range and learns nothing from the answers."""
    if env.done:
        return None
    return PolicyAction(tool="guess", arguments={"n": rng.randint(env.low, env.high)})


def halving_solver(env: GuessNumber, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player that halves what is left; of two middles it draws one."""
    if env.done:
        return None
    low, high = numbers_left(env)
    middle = (low + high + rng.randint(0, 1)) // 2
    return PolicyAction(tool="guess", arguments={"n": middle}, thought=f"{low} to {high}")


def numbers_left(env: GuessNumber) -> tuple[int, int]:
    """The smallest and the largest number that agree with every answer so far."""
    low = max([env.low, *(n + 1 for n, answer in env.history if answer == "higher")])
    high = min([env.high, *(n - 1 for n, answer in env.history if answer == "lower")])
    return low, high


POLICIES: dict[str, Policy] = {"random": random_player, "solver": halving_solver}
