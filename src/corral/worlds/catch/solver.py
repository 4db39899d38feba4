"""Scripted players of catch. They read the grid, as a model does."""

import random

from corral.worlds.catch.env import Catch
from corral.worlds.policy import Policy, PolicyAction

STAY_RATE = 0.8
"""Often enough that most balls are missed, and that a greedy imitator never moves at all."""


def random_player(env: Catch, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player that moves left, stays or moves right, each as likely."""
    return None if env.done else _act(rng.choice((-1, 0, 1)))


def solver(env: Catch, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player that goes below the ball and stays there. It has time: four columns at most."""
    return None if env.done else _act(env.ball[1] - env.paddle)


def lazy_player(env: Catch, last_text: str, rng: random.Random) -> PolicyAction | None:
    """The solver with a bad habit: in 80 % of its turns it stays where it is.

    Who imitates it learns where to go and to stay put alike; only the reward tells them apart.
    """
    if not env.done and rng.random() < STAY_RATE:
        return _act(0)
    return solver(env, last_text, rng)


def _act(shift: int) -> PolicyAction:
    if shift == 0:
        return PolicyAction(tool="stay", thought="Stay.")
    direction = "left" if shift < 0 else "right"
    thought = f"The ball is to the {direction}."
    return PolicyAction(tool="move", arguments={"direction": direction}, thought=thought)


POLICIES: dict[str, Policy] = {"random": random_player, "solver": solver, "lazy": lazy_player}
