"""Sudoku: fill a grid so that each row, column and box has every number once."""

from dataclasses import replace
from typing import Any

from corral.worlds.sudoku.env import SmallSudoku, Sudoku
from corral.worlds.sudoku.solver import POLICIES, careless_solver
from corral.worlds.tasks import game_seeds, held_out_seeds
from corral.worlds.world import World

__all__ = ["SMALL", "WORLD", "SmallSudoku", "Sudoku", "evaluation_tasks", "tasks"]

PROMPT = "Solve the sudoku: each row, column and box has every number once. A dot is blank.\n"


def tasks(seed: int, count: int) -> list[dict[str, Any]]:
    """``count`` rows ``{"prompt", "seed"}``."""
    return [_row(one) for one in game_seeds(seed=seed, count=count)]


def evaluation_tasks(count: int = 30) -> list[dict[str, Any]]:
    """The fixed rows of evaluations, whose puzzles are never trained on."""
    return [_row(one) for one in held_out_seeds(count)]


def _row(seed: int) -> dict[str, Any]:
    return {"prompt": PROMPT, "seed": seed}


def _is_win(env: Sudoku) -> bool:
    return env.won


WORLD = World(
    name="sudoku",
    summary="Fill the 21 blank cells of a sudoku.",
    factory=Sudoku,
    tasks=tasks,
    evaluation_tasks=evaluation_tasks,
    policies=POLICIES,
    is_win=_is_win,
)

SMALL = replace(
    WORLD,
    name="sudoku_4x4",
    summary="Fill the four blank cells of a sudoku with the numbers 1 to 4.",
    factory=SmallSudoku,
    policies={**POLICIES, "careless": careless_solver()},
)
"""For small models."""
