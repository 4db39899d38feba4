"""Sudoku: fill a grid so that each row, column and box has every number once."""

from dataclasses import replace

from corral.worlds.sudoku.env import SmallSudoku, Sudoku
from corral.worlds.sudoku.solver import POLICIES, careless_solver
from corral.worlds.tasks import seeded_rows
from corral.worlds.world import World

__all__ = ["SMALL", "WORLD", "SmallSudoku", "Sudoku", "evaluation_tasks", "tasks"]

PROMPT = "Solve the sudoku: each row, column and box has every number once. A dot is blank.\n"
tasks, evaluation_tasks = seeded_rows(PROMPT)


WORLD = World(
    name="sudoku",
    summary="Fill the 21 blank cells of a sudoku.",
    factory=Sudoku,
    tasks=tasks,
    evaluation_tasks=evaluation_tasks,
    policies=POLICIES,
)

SMALL = replace(
    WORLD,
    name="sudoku_4x4",
    summary="Fill the four blank cells of a sudoku with the numbers 1 to 4.",
    factory=SmallSudoku,
    policies={**POLICIES, "careless": careless_solver()},
)
"""For small models."""
