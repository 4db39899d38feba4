"""Sudoku boards and hints as text."""

from collections.abc import Sequence
from math import isqrt

from corral.worlds.sudoku.grid import candidates

HINTS_AT_MOST = 10
"""Cells that hints tell about."""


def board_text(board: Sequence[int], size: int) -> str:
    """The board with its boxes marked; a dot is a blank cell."""
    box = isqrt(size)
    lines: list[str] = []
    for row in range(size):
        if row and row % box == 0:
            lines.append("+".join("-" * (2 * box + (0 < part < box - 1)) for part in range(box)))
        cells = [str(number or ".") for number in board[row * size : (row + 1) * size]]
        boxes = [" ".join(cells[start : start + box]) for start in range(0, size, box)]
        lines.append(" | ".join(boxes))
    return "\n".join(lines)


def hint_text(board: Sequence[int], size: int, level: str) -> str:
    """What may stand in blank cells.

    Args:
        level: ``easy``: cells where one number fits, then others, the fewest numbers first.
            ``medium``: the first blank cells with the numbers that fit. ``hard``: nothing.
    """
    if level == "hard":
        return ""
    blank = [cell for cell, number in enumerate(board) if not number]
    fits = {cell: candidates(board, cell, size) for cell in blank}
    if level == "medium":
        return _listed("Fits", blank, fits, size)
    sure = [cell for cell in blank if len(fits[cell]) == 1]
    unsure = sorted((cell for cell in blank if len(fits[cell]) > 1), key=lambda c: len(fits[c]))
    left = HINTS_AT_MOST - len(sure)
    parts = [_listed("Sure", sure, fits, size), _listed("Fits", unsure[: max(left, 0)], fits, size)]
    return "\n".join(part for part in parts if part)


def _listed(word: str, cells: Sequence[int], fits: dict[int, list[int]], size: int) -> str:
    told = [
        f"({cell // size + 1}, {cell % size + 1}) {'/'.join(map(str, fits[cell]))}"
        for cell in cells[:HINTS_AT_MOST]
    ]
    return f"{word}: {', '.join(told)}" if told else ""
