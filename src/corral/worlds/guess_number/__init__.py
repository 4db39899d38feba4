"""Guess-the-number: find a number from 1 to 20 with higher and lower."""

from dataclasses import replace
from functools import partial
from typing import Any

from corral.worlds.guess_number.env import GuessNumber, SmallGuessNumber
from corral.worlds.guess_number.solver import POLICIES
from corral.worlds.tasks import draw_in_passes, spread
from corral.worlds.world import World

__all__ = ["SMALL", "WORLD", "GuessNumber", "SmallGuessNumber", "evaluation_tasks", "tasks"]

PROMPT = "Find the number. "
"""Ends in a space because what ``reset`` returns is appended to it as it is."""
EVALUATION_SEED = 20


def tasks(seed: int, count: int, *, game: type[GuessNumber] = GuessNumber) -> list[dict[str, Any]]:
    """``count`` rows ``{"prompt", "secret"}``; every number once before any comes twice."""
    return [_row(secret) for secret in draw_in_passes(_numbers(game), seed=seed, count=count)]


def evaluation_tasks(
    count: int = 20, *, game: type[GuessNumber] = GuessNumber
) -> list[dict[str, Any]]:
    """The fixed rows of evaluations: ``count`` of the game's numbers, spread evenly."""
    return [_row(secret) for secret in spread(_numbers(game), seed=EVALUATION_SEED, count=count)]


def _numbers(game: type[GuessNumber]) -> range:
    return range(game.low, game.high + 1)


def _row(secret: int) -> dict[str, Any]:
    return {"prompt": PROMPT, "secret": secret}


def _is_win(env: GuessNumber) -> bool:
    return env.found


WORLD = World(
    name="guess_number",
    summary="Find a number from 1 to 20 with the answers higher and lower.",
    factory=GuessNumber,
    tasks=tasks,
    evaluation_tasks=evaluation_tasks,
    policies=POLICIES,
    is_win=_is_win,
)

SMALL = replace(
    WORLD,
    name="corral.worlds.guess_number:SMALL",
    summary="Find a number from 1 to 10 in four guesses.",
    factory=SmallGuessNumber,
    tasks=partial(tasks, game=SmallGuessNumber),
    evaluation_tasks=partial(evaluation_tasks, game=SmallGuessNumber),
)
"""A shorter game for models that are slow; not listed among the built-in worlds."""
