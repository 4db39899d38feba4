"""Catch as an environment class: a ball falls, a paddle waits below."""

import random
from typing import Any, Literal

ROWS, COLUMNS = 10, 5
BALL, PADDLE, EMPTY = "o", "x", "."


class Catch:
    """A ball falls through a grid of ten rows and five columns; be below it when it arrives.

    ::

        game = Catch()
        print(game.reset(seed=1))    # the ball (o) in the top row, the paddle (x) in the bottom row
        game.move("left")            # the paddle goes left, the ball falls by one row
        game.stay()                  # only the ball moves
        game.get_reward()            # 1.0 once it is caught
    """

    def __init__(self) -> None:
        self._start(ball_column=0)
        self.done = True  # until a first reset there is no game to play

    def reset(self, seed: int, **kwargs: Any) -> str:
        """Drop a new ball.

        Args:
            seed: Decides the column that it falls in.
            kwargs: Other columns of the row; not used.
        """
        self._start(ball_column=random.Random(f"catch {seed}").randrange(COLUMNS))
        return self._grid()

    def move(self, direction: Literal["left", "right"]) -> str:
        """Move the paddle by one column, while the ball falls by one row.

        Args:
            direction: Where to.
        """
        return self._step(-1 if direction == "left" else 1)

    def stay(self) -> str:
        """Leave the paddle where it is, while the ball falls by one row."""
        return self._step(0)

    def get_reward(self) -> float:
        """1 when the ball was caught; 0 when it was missed, or has not arrived."""
        return float(self.won)

    def _start(self, ball_column: int) -> None:
        self.ball = (0, ball_column)
        """Row, from the top, and column."""
        self.paddle = COLUMNS // 2
        """Column."""
        self.done = False
        self.won = False
        self.metrics: dict[str, float] = {"win": 0.0, "steps": 0.0}

    def _step(self, shift: int) -> str:
        if self.done:
            raise ValueError("Game over.")
        row, column = self.ball
        self.ball = (row + 1, column)
        self.paddle = min(max(self.paddle + shift, 0), COLUMNS - 1)
        self.done = row + 1 == ROWS - 1
        self.won = self.done and self.paddle == column
        self.metrics = {"win": float(self.won), "steps": float(row + 1)}
        if not self.done:
            return self._grid()
        return f"{self._grid()}\n{'Caught' if self.won else 'Missed'}. Game over."

    def _grid(self) -> str:
        cells = [[EMPTY] * COLUMNS for _ in range(ROWS)]
        row, column = self.ball
        cells[row][column] = BALL
        cells[-1][self.paddle] = PADDLE  # in front of a ball that it has caught
        return "\n".join("".join(line) for line in cells)
