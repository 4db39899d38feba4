"""Guess-the-number as an environment class: the smallest world in which memory pays."""

from typing import Any


class GuessNumber:
    """A hidden number; every guess is answered higher, lower or correct.

    ::

        game = GuessNumber()
        game.reset(secret=7)       # "I picked a number from 1 to 20."
        game.guess(10)             # "lower"
        game.guess(7)              # "correct"
        game.get_reward()          # 0.95: found, with one guess more than the least
    """

    low = 1
    high = 20
    max_guesses = 8
    """Halving needs five for 20 numbers; eight forgive a few mistakes."""
    reward_lost_per_guess = 0.05
    """Small: finding it late is still far better than not at all, but groups differ."""

    def __init__(self) -> None:
        self._start(secret=self.low, low=self.low, high=self.high)
        self.done = True  # until a first reset there is no game to play

    def reset(
        self, secret: int, low: int | None = None, high: int | None = None, **kwargs: Any
    ) -> str:
        """Start a game.

        Args:
            secret: The number to find.
            low: Smallest possible number; None takes the class's.
            high: Largest possible number; None takes the class's.
            kwargs: Other columns of the row; not used.
        """
        low = type(self).low if low is None else low
        high = type(self).high if high is None else high
        if not low <= secret <= high:
            raise ValueError(f"secret={secret!r}: must be from low={low} to high={high}.")
        self._start(secret=secret, low=low, high=high)
        return f"I picked a number from {low} to {high}."

    def guess(self, n: int) -> str:
        """Guess the number. The answer says whether it is higher, lower, or correct.

        Args:
            n: Your guess.
        """
        if self.done:
            raise ValueError("Game over.")
        self.contradictions += not self._lowest_left <= n <= self._highest_left
        answer = self._compare(n)
        self.history.append((n, answer))
        self.guesses += 1
        self.found = answer == "correct"
        self.done = self.found or self.guesses == self.max_guesses
        self.metrics = self._measure()
        if self.done and not self.found:
            return f"{answer}. Game over."
        return answer

    def get_reward(self) -> float:
        """1.0 when found at once, 0.05 less for each further guess; 0 when not found."""
        return 1.0 - self.reward_lost_per_guess * (self.guesses - 1) if self.found else 0.0

    def _start(self, *, secret: int, low: int, high: int) -> None:
        self._secret = secret
        self.low, self.high = low, high
        self._lowest_left, self._highest_left = low, high
        self.history: list[tuple[int, str]] = []
        """Guesses with their answers: all that a player knows."""
        self.found = False
        self.done = False
        self.guesses = 0
        self.contradictions = 0
        """Guesses that earlier answers had already ruled out."""
        self.metrics: dict[str, float] = self._measure()

    def _compare(self, n: int) -> str:
        if n < self._secret:
            self._lowest_left = max(self._lowest_left, n + 1)
            return "higher"
        if n > self._secret:
            self._highest_left = min(self._highest_left, n - 1)
            return "lower"
        return "correct"

    def _measure(self) -> dict[str, float]:
        return {
            "win": float(self.found),
            "guesses": float(self.guesses),
            "contradictions": float(self.contradictions),
        }


class SmallGuessNumber(GuessNumber):
    """The game with the numbers from 1 to 10 and four guesses, which halving just needs."""

    high = 10
    max_guesses = 4
