"""A question that a function of one's own scores, as an environment class."""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from corral.errors import EnvironmentFault, UsageError

Check = Callable[[str, Mapping[str, Any]], float]
"""``(answer, row) -> score``; the row is the whole one, hidden columns included. Async is fine."""


class Questions:
    """A factory of environments that ask what their row says and score the answer.

    ::

        factory = Questions(check)                   # one answer
        factory = Questions(check, attempts=3)       # up to three, each told its score
    """

    REQUIRES_OWN_THREAD = False

    def __init__(self, check: Check, *, attempts: int = 1, winning_score: float = 1.0) -> None:
        """
        Args:
            check: Scores an answer.
            attempts: Answers that may be given; a winning one is the last.
            winning_score: From which score on an answer wins.

        Raises:
            UsageError: No check, or no attempt.
        """
        if not callable(check):
            raise UsageError(f"check={check!r}: give a function check(answer, row) -> float.")
        if attempts < 1:
            raise UsageError(f"attempts={attempts}: must be 1 or more.")
        self._check, self._attempts, self._winning_score = check, attempts, winning_score

    def __call__(self) -> "Question":
        """Make an environment."""
        return Question(self._check, self._attempts, self._winning_score)


class Question:
    """One question; made by `Questions`."""

    REQUIRES_OWN_THREAD = False

    def __init__(self, check: Check, attempts: int, winning_score: float) -> None:
        self._check, self._attempts, self._winning_score = check, attempts, winning_score
        self._begin({})
        self.done = True  # until a first reset nothing is asked

    def reset(self, question: str, **row: Any) -> str:
        """Ask.

        Args:
            question: What the model reads.
            row: The other columns, which only the check sees.
        """
        self._begin({**row, "question": question})
        return question

    async def answer(self, text: str) -> str:
        """Give the answer.

        Args:
            text: The answer alone.
        """
        if self.done:
            raise ValueError("The question was answered.")
        self.answers += 1
        try:
            score = await scored(self._check, text, self._row)
        except EnvironmentFault as fault:
            # Not for the model to read, and no wrong answer either.
            self._fault, self.done = fault, True
            return "The answer was taken."
        self.score = max(self.score, score) if self.answers > 1 else score
        self.won = score >= self._winning_score
        self.done = self.won or self.answers == self._attempts
        self._measure()
        if self.done:
            return "Right." if self.won else "Wrong."
        return f"That scores {score:g}. You may answer again."

    def get_reward(self) -> float:
        """The best score of all answers; 0 for none.

        Raises:
            EnvironmentFault: The check failed.
        """
        if self._fault is not None:
            raise self._fault
        return self.score

    def _begin(self, row: dict[str, Any]) -> None:
        self._row = row
        self.done = False
        self.won = False
        self.score = 0.0
        self.answers = 0
        self._fault: EnvironmentFault | None = None
        self._measure()

    def _measure(self) -> None:
        self.metrics: dict[str, float] = {"win": float(self.won), "answers": float(self.answers)}


async def scored(check: Check, answer: str, row: Mapping[str, Any]) -> float:
    """What a check says of an answer, as a finite number.

    Raises:
        EnvironmentFault: The check raised, or gave something else: no answer of a model may.
    """
    name = getattr(check, "__name__", "check")
    try:
        value: Any = check(answer, row)
        if inspect.isawaitable(value):
            value = await value
        score = float(value)
    except Exception as error:
        raise EnvironmentFault(f"{name} raised {type(error).__name__}: {error}") from error
    if not math.isfinite(score):
        raise EnvironmentFault(f"{name} gave {score}: a score is a finite number.")
    return score
