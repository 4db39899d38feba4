"""Sudoku grids: candidates, solving, and puzzles with one solution.

A grid is a tuple of rows, one after the other; 0 is an empty cell. Its size is a square number:
4 (boxes of 2 × 2) or 9 (3 × 3).
"""

import random
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import isqrt

Grid = tuple[int, ...]


@lru_cache
def peers(size: int) -> tuple[tuple[int, ...], ...]:
    """For each cell the others in its row, column and box."""
    box = isqrt(size)

    def units(cell: int) -> tuple[int, int, int]:
        row, column = divmod(cell, size)
        return row, column, row // box * box + column // box

    cells = range(size * size)
    return tuple(
        tuple(
            other
            for other in cells
            if other != cell and any(a == b for a, b in zip(units(cell), units(other), strict=True))
        )
        for cell in cells
    )


def candidates(grid: Sequence[int], cell: int, size: int) -> list[int]:
    """The numbers that no peer of an empty cell has, in order."""
    taken = {grid[other] for other in peers(size)[cell]}
    return [number for number in range(1, size + 1) if number not in taken]


def solutions(grid: Sequence[int], size: int, rng: random.Random | None = None) -> Iterator[Grid]:
    """All ways to fill the grid, one after the other; in random order with ``rng``."""
    cells = list(grid)
    allowed = [0] * len(cells)  # bit n: no peer has n
    for cell, number in enumerate(cells):
        if not number:
            allowed[cell] = sum(1 << n for n in candidates(cells, cell, size))
    yield from _fill(cells, allowed, size, rng)


def solve(grid: Sequence[int], size: int) -> Grid | None:
    """The first solution found; None if there is none."""
    return next(solutions(grid, size), None)


def has_one_solution(grid: Sequence[int], size: int) -> bool:
    """Whether there is exactly one way to fill the grid."""
    found = solutions(grid, size)
    return next(found, None) is not None and next(found, None) is None


@lru_cache(maxsize=256)
def puzzle(size: int, blanks: int, seed: int) -> tuple[Grid, Grid]:
    """A puzzle with ``blanks`` empty cells and its only solution; the same seed gives the same.

    A full grid is drawn, then cells are emptied in random order as long as the solution stays the
    only one; where that ends too early, another grid is drawn.
    """
    rng = random.Random(f"sudoku {size} {blanks} {seed}")
    while True:
        solution = next(solutions([0] * size * size, size, rng))
        grid = list(solution)
        left = blanks
        for cell in rng.sample(range(len(grid)), len(grid)):
            if not left:
                return tuple(grid), solution
            grid[cell] = 0
            if has_one_solution(grid, size):
                left -= 1
            else:
                grid[cell] = solution[cell]


def _fill(
    cells: list[int], allowed: list[int], size: int, rng: random.Random | None
) -> Iterator[Grid]:
    """Solutions from here on: the cell with the fewest numbers left is filled first."""
    empty = [cell for cell, number in enumerate(cells) if not number]
    if not empty:
        yield tuple(cells)
        return
    cell = min(empty, key=lambda one: allowed[one].bit_count())
    numbers = [n for n in range(1, size + 1) if allowed[cell] >> n & 1]
    for number in rng.sample(numbers, len(numbers)) if rng else numbers:
        touched = [
            one for one in peers(size)[cell] if not cells[one] and allowed[one] >> number & 1
        ]
        cells[cell] = number
        for one in touched:
            allowed[one] ^= 1 << number
        yield from _fill(cells, allowed, size, rng)
        cells[cell] = 0
        for one in touched:
            allowed[one] ^= 1 << number
