"""Catch: be below a falling ball when it arrives."""

from typing import Any

from corral.worlds.catch.env import Catch
from corral.worlds.catch.solver import POLICIES
from corral.worlds.tasks import game_seeds, held_out_seeds
from corral.worlds.world import World

__all__ = ["WORLD", "Catch", "evaluation_tasks", "tasks"]

PROMPT = "Catch the ball (o) with the paddle (x): it falls one row each time you move or stay.\n"


def tasks(seed: int, count: int) -> list[dict[str, Any]]:
    """``count`` rows ``{"prompt", "seed"}``."""
    return [_row(one) for one in game_seeds(seed=seed, count=count)]


def evaluation_tasks(count: int = 30) -> list[dict[str, Any]]:
    """The fixed rows of evaluations, whose seeds are never trained on."""
    return [_row(one) for one in held_out_seeds(count)]


def _row(seed: int) -> dict[str, Any]:
    return {"prompt": PROMPT, "seed": seed}


def _is_win(env: Catch) -> bool:
    return env.won


WORLD = World(
    name="catch",
    summary="Be below a falling ball when it arrives, in a grid of ten rows and five columns.",
    factory=Catch,
    tasks=tasks,
    evaluation_tasks=evaluation_tasks,
    policies=POLICIES,
    is_win=_is_win,
)
