"""Wordle and Catch in one run: one class that plays what a column of the row says."""

import random
from typing import Any

from corral.worlds import catch, wordle
from corral.worlds.multi_env.env import WordleAndCatch
from corral.worlds.policy import Policy, PolicyAction
from corral.worlds.world import World

__all__ = ["WORLD", "WordleAndCatch", "evaluation_tasks", "tasks"]

_WORLDS = {"wordle": wordle.WORLD, "catch": catch.WORLD}


def tasks(seed: int, count: int) -> list[dict[str, Any]]:
    """``count`` rows of the games by turns, each with the column ``env``."""
    halves = {env: world.tasks(seed, (count + 1) // 2) for env, world in _WORLDS.items()}
    return _by_turns(halves, first=seed % 2)[:count]


def evaluation_tasks(count: int = 30) -> list[dict[str, Any]]:
    """The fixed rows of evaluations: half of them of each game."""
    halves = {env: world.evaluation_tasks((count + 1) // 2) for env, world in _WORLDS.items()}
    return _by_turns(halves, first=0)[:count]


def _by_turns(rows: dict[str, list[dict[str, Any]]], *, first: int) -> list[dict[str, Any]]:
    """One row of each game after the other; the seed says whose is first, so one row may be any."""
    named = [[{**row, "env": env} for row in own] for env, own in rows.items()]
    ordered = named[first:] + named[:first]
    return [row for together in zip(*ordered, strict=True) for row in together]


def _both(wordle_player: str, catch_player: str) -> Policy:
    """A player that plays each game as one of its own players does."""
    players = {
        "wordle": _WORLDS["wordle"].policy(wordle_player),
        "catch": _WORLDS["catch"].policy(catch_player),
    }

    def play(env: WordleAndCatch, last_text: str, rng: random.Random) -> PolicyAction | None:
        return players[env.env](env.game, last_text, rng)

    return play


WORLD = World(
    name="multi_env",
    summary="Wordle or Catch, as a column of the row says.",
    factory=WordleAndCatch,
    tasks=tasks,
    evaluation_tasks=evaluation_tasks,
    game_column="env",
    policies={
        "random": _both("random", "random"),
        "solver": _both("solver", "solver"),
        "careless": _both("careless", "lazy"),
    },
)
