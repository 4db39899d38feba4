"""Sudoku as an environment class, and a smaller one."""

from collections import Counter
from statistics import fmean
from typing import Any, Literal

from corral.rewards import repetition, share
from corral.worlds.sudoku.grid import candidates, puzzle
from corral.worlds.sudoku.show import board_text, hint_text

Difficulty = Literal["very_easy", "easy", "medium", "hard"]
Hints = Literal["easy", "medium", "hard"]

BLANK_SHARES: dict[str, float] = {"very_easy": 0.08, "easy": 0.26, "medium": 0.5, "hard": 0.64}
"""Of the cells. TextArena's default has 21 of 81 blank, as ``easy`` does."""

INVALID_IN_A_ROW = 2
"""As in TextArena: one invalid move is tolerated, a second in a row ends the game."""

REFUSED = -0.5
"""What a refused move counts in the mean of ``valid_moves``; an accepted one counts 1."""


class Sudoku:
    """Fill a grid so that each row, column and box has every number once.

    ::

        game = Sudoku()
        print(game.reset(seed=7))                  # the board, and hints
        print(game.place(row=1, col=3, number=4))  # accepted only if the solution has it there
        game.get_reward()                          # 4.0 once all is filled without a mistake
    """

    size = 9
    difficulty: Difficulty = "easy"
    hints: Hints = "medium"
    max_moves = 100

    def __init__(self) -> None:
        cells = (0,) * self.size**2
        self._start(cells, cells, self.hints)
        self.done = True  # until a first reset there is no game to play

    def reset(
        self,
        seed: int,
        difficulty: Difficulty | None = None,
        hints: Hints | None = None,
        **kwargs: Any,
    ) -> str:
        """Start a puzzle.

        Args:
            seed: Decides the puzzle.
            difficulty: How much is blank; None takes the class's.
            hints: What is told about blank cells, most with ``easy``; None takes the class's.
            kwargs: Other columns of the row; not used.
        """
        difficulty = difficulty or self.difficulty
        if difficulty not in BLANK_SHARES:
            raise ValueError(
                f"difficulty={difficulty!r}: must be one of {', '.join(BLANK_SHARES)}."
            )
        blanks = round(BLANK_SHARES[difficulty] * self.size**2)
        self._start(*puzzle(self.size, blanks, seed), hints or self.hints)
        return self._shown()

    def place(self, row: int, col: int, number: int) -> str:
        """Write a number into a blank cell.

        Args:
            row: Row of the cell, from 1 at the top.
            col: Column of the cell, from 1 at the left.
            number: The number that belongs there.
        """
        if self.done:
            raise ValueError("Game over.")
        problem = self._problem(row, col, number)
        self._judge(row, col, number, problem)
        return self._refuse(problem) if problem else self._accept(row, col, number)

    def get_reward(self) -> float:
        """The sum of the parts: 4 for a puzzle solved without a mistake."""
        return sum(self.reward_parts.values())

    @property
    def reward_parts(self) -> dict[str, float]:
        """The terms of the reward by name; see the README for their formulas."""
        return {
            "empty_cell": fmean(self._aims) if self._aims else 0.0,
            "valid_moves": fmean(self._verdicts) if self._verdicts else 0.0,
            "repetition": -fmean(self._repeats) if self._repeats else 0.0,
            "progress": share(self.filled, self._blanks) if self._blanks else 0.0,
            "correct": float(self.won),
        }

    def _start(self, board: tuple[int, ...], solution: tuple[int, ...], hints: str) -> None:
        self._solution, self._given, self._hints = solution, board, hints
        self._blanks = board.count(0)
        self.board = list(board)
        """Rows one after the other; 0 is blank."""
        self.done = False
        self.won = False
        self.filled = 0
        self.invalid_moves = 0
        self._invalid_in_a_row = 0
        self.last_move: tuple[int, int, int] | None = None
        """Row, column and number."""
        self._times: Counter[tuple[int, int, int]] = Counter()
        self._aims: list[float] = []
        self._verdicts: list[float] = []
        self._repeats: list[float] = []
        self._measure()

    def _problem(self, row: int, col: int, number: int) -> str | None:
        allowed = range(1, self.size + 1)
        if row not in allowed or col not in allowed or number not in allowed:
            return f"Row, column and number are 1 to {self.size}."
        cell = self._cell(row, col)
        if self._given[cell]:
            return f"Cell ({row}, {col}) is given."
        if self.board[cell]:
            return f"Cell ({row}, {col}) is filled already."
        if number not in candidates(self.board, cell, self.size):
            return f"The row, column or box of ({row}, {col}) has a {number} already."
        if number != self._solution[cell]:
            return f"{number} at ({row}, {col}) leaves no solution."
        return None

    def _judge(self, row: int, col: int, number: int, problem: str | None) -> None:
        """Count a move for the parts of the reward."""
        allowed = range(1, self.size + 1)
        is_aimed = row in allowed and col in allowed and not self.board[self._cell(row, col)]
        self._aims.append(1.0 if is_aimed else -1.0)
        self._verdicts.append(REFUSED if problem else 1.0)
        move = (row, col, number)
        self._repeats.append(repetition(self._times[move]))
        self._times[move] += 1
        self.last_move = move

    def _refuse(self, problem: str) -> str:
        self.invalid_moves += 1
        self._invalid_in_a_row += 1
        is_lost = self._invalid_in_a_row == INVALID_IN_A_ROW
        self.done = is_lost or self._is_out_of_moves()
        self._measure()
        if is_lost:
            return f"{problem} Second invalid move in a row: you lost."
        return f"{problem} {'No moves left.' if self.done else 'Try another.'}"

    def _accept(self, row: int, col: int, number: int) -> str:
        self.board[self._cell(row, col)] = number
        self.filled += 1
        self._invalid_in_a_row = 0
        self.won = self.filled == self._blanks
        self.done = self.won or self._is_out_of_moves()
        self._measure()
        if self.won:
            return "Solved. Game over."
        return "No moves left." if self.done else self._shown()

    def _is_out_of_moves(self) -> bool:
        return len(self._aims) == self.max_moves

    def _cell(self, row: int, col: int) -> int:
        return (row - 1) * self.size + col - 1

    def _shown(self) -> str:
        hint = hint_text(self.board, self.size, self._hints)
        return "\n".join([board_text(self.board, self.size), *([hint] if hint else [])])

    def _measure(self) -> None:
        self.metrics: dict[str, float] = {
            "win": float(self.won),
            "filled": float(self.filled),
            "invalid_moves": float(self.invalid_moves),
        }


class SmallSudoku(Sudoku):
    """The game with the numbers 1 to 4, and all hints."""

    size = 4
    hints: Hints = "easy"
