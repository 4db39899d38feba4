"""Scripted players of sudoku. They read the board, never the solution kept for it."""

import random

from corral.worlds.policy import Policy, PolicyAction
from corral.worlds.sudoku.env import Sudoku
from corral.worlds.sudoku.grid import candidates, solve

SLIP_RATE = 0.5
"""Often enough that an imitator loses games by it, and no oftener: with 0.7 a small one learned
where to write, and nothing of what."""


def random_player(env: Sudoku, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player that writes any number into any blank cell."""
    if env.done:
        return None
    return _place(env, rng.choice(_blank(env)), rng.randint(1, env.size))


def solver(env: Sudoku, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player that fills the cell where the fewest numbers fit, with what the solution has."""
    if env.done:
        return None
    fits = {cell: candidates(env.board, cell, env.size) for cell in _blank(env)}
    cell = min(fits, key=lambda one: len(fits[one]))
    numbers = fits[cell]
    if len(numbers) == 1:
        return _place(env, cell, numbers[0], f"Only {numbers[0]} fits.")
    solution = solve(env.board, env.size)
    assert solution is not None  # refused moves keep the board solvable
    return _place(env, cell, solution[cell], f"{'/'.join(map(str, numbers))} fit.")


def careless_solver(slip_rate: float = SLIP_RATE) -> Policy:
    """The solver with a bad habit: in ``slip_rate`` of its turns it writes any number into the cell
    that it means to fill. Two refused ones in a row lose.

    Who imitates it learns where to write and what, and the habit; only the reward tells them apart.
    """

    def play(env: Sudoku, last_text: str, rng: random.Random) -> PolicyAction | None:
        action = solver(env, last_text, rng)
        if action is None or rng.random() >= slip_rate:
            return action
        slip = {**action.arguments, "number": rng.randint(1, env.size)}
        return PolicyAction(tool=action.tool, arguments=slip)

    return play


def _blank(env: Sudoku) -> list[int]:
    return [cell for cell, number in enumerate(env.board) if not number]


def _place(env: Sudoku, cell: int, number: int, thought: str = "") -> PolicyAction:
    row, col = divmod(cell, env.size)
    arguments = {"row": row + 1, "col": col + 1, "number": number}
    return PolicyAction(tool="place", arguments=arguments, thought=thought)


POLICIES: dict[str, Policy] = {"random": random_player, "solver": solver}
