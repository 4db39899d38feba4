"""Wordle: find a secret five-letter word in six guesses."""

from typing import Any

from corral.worlds.tasks import draw_in_passes, spread
from corral.worlds.wordle.env import Wordle
from corral.worlds.wordle.solver import POLICIES, candidates
from corral.worlds.wordle.words import secrets
from corral.worlds.world import World

__all__ = ["WORLD", "Wordle", "candidates", "evaluation_tasks", "tasks"]

PROMPT = "Play Wordle: find the secret five-letter word in six guesses."
EVALUATION_SEED = 30
"""Fixed for good: the same words are played before, between and after all stages of any run."""


def tasks(seed: int, count: int) -> list[dict[str, Any]]:
    """``count`` rows ``{"prompt", "secret"}``; every secret once before any comes twice."""
    return [_row(secret) for secret in draw_in_passes(secrets(), seed=seed, count=count)]


def evaluation_tasks(count: int = 30) -> list[dict[str, Any]]:
    """The fixed rows of evaluations: ``count`` secrets spread evenly over the alphabet."""
    return [_row(secret) for secret in spread(secrets(), seed=EVALUATION_SEED, count=count)]


def _row(secret: str) -> dict[str, Any]:
    return {"prompt": PROMPT, "secret": secret}


WORLD = World(
    name="wordle",
    summary="Find a secret five-letter word in six guesses.",
    factory=Wordle,
    tasks=tasks,
    evaluation_tasks=evaluation_tasks,
    policies=POLICIES,
)
