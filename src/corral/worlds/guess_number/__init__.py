"""Guess-the-number: find a number from 1 to 20 with higher and lower."""

from typing import Any

from corral.worlds.guess_number.env import GuessNumber
from corral.worlds.guess_number.solver import POLICIES
from corral.worlds.tasks import draw_in_passes, spread
from corral.worlds.world import World

__all__ = ["WORLD", "GuessNumber", "evaluation_tasks", "tasks"]

PROMPT = "Find the number. "
"""Ends in a space because what ``reset`` returns is appended to it as it is."""
EVALUATION_SEED = 20


def tasks(seed: int, count: int) -> list[dict[str, Any]]:
    """``count`` rows ``{"prompt", "secret"}``; every number once before any comes twice."""
    return [_row(secret) for secret in draw_in_passes(_numbers(), seed=seed, count=count)]


def evaluation_tasks(count: int = 20) -> list[dict[str, Any]]:
    """The fixed rows of evaluations: ``count`` of the 20 numbers, spread evenly."""
    return [_row(secret) for secret in spread(_numbers(), seed=EVALUATION_SEED, count=count)]


def _numbers() -> range:
    return range(GuessNumber.low, GuessNumber.high + 1)


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
