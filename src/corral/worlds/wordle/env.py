"""Wordle as an environment class."""

from typing import Any

from corral.rewards import excess
from corral.worlds.wordle.feedback import GREEN, mark, render
from corral.worlds.wordle.words import LETTERS, accepted

INVALID_IN_A_ROW = 2
"""As in TextArena: one invalid guess is tolerated, a second in a row ends the game."""


class Wordle:
    """Six guesses for a secret five-letter word.

    ::

        game = Wordle()
        game.reset(secret="stone")
        print(game.guess("crane"))    # C R A N E / X X X G G / 5 guesses left.
        game.get_reward()             # 0.2: two greens, not won yet
    """

    max_guesses = 6

    def __init__(self) -> None:
        self._start(secret="")
        self.done = True  # until a first reset there is no game to play

    def reset(self, secret: str, **kwargs: Any) -> str | None:
        """Start a game; the task's prompt and the tool's description say all there is to know.

        Args:
            secret: The word to find, one of the accepted guesses.
            kwargs: Other columns of the row; not used.
        """
        if secret not in accepted():
            raise ValueError(
                f"secret={secret!r}: must be a lower-case word of {LETTERS} letters from "
                "words/guesses.txt, or it could never be guessed."
            )
        self._start(secret)
        return None

    def guess(self, word: str) -> str:
        """Guess the word. Marks: G right place, Y elsewhere in the word, X not in the word.

        Args:
            word: A five-letter English word.
        """
        if self.done:
            raise ValueError("Game over.")
        word = word.strip().strip("[]").strip().lower()
        problem = self._problem(word)
        answer = self._refuse(problem) if problem else self._judge(word)
        self.metrics = self._measure()
        return answer

    def get_reward(self) -> float:
        """The sum of the three parts."""
        return sum(self.reward_parts.values())

    @property
    def reward_parts(self) -> dict[str, float]:
        """The terms of the reward by name."""
        return {
            "win_reward": self.win_reward,
            "partial_reward": self.partial_reward,
            "invalid_reward": self.invalid_reward,
        }

    @property
    def win_reward(self) -> float:
        """1.42 when won with the first guess, down to 1.0 with the sixth; else 0."""
        return 1.0 + 0.5 * (1.0 - self.guesses / self.max_guesses) if self.won else 0.0

    @property
    def partial_reward(self) -> float:
        """0.1 for each green of the best guess while the game is not won; else 0."""
        return 0.0 if self.won else 0.1 * self.best_greens

    @property
    def invalid_reward(self) -> float:
        """Minus 0.1 for each invalid guess."""
        return -excess(self.invalid_guesses, each=0.1)

    def _start(self, secret: str) -> None:
        self._secret = secret
        self.history: list[tuple[str, str]] = []
        """Valid guesses with their marks: all that a player knows."""
        self.done = False
        self.won = False
        self.guesses = 0
        self.invalid_guesses = 0
        self.best_greens = 0
        self._invalid_in_a_row = 0
        self.metrics: dict[str, float] = self._measure()

    def _problem(self, word: str) -> str | None:
        if len(word) != LETTERS:
            return f"Your word must be exactly {LETTERS} letters."
        if any(word == earlier for earlier, _ in self.history):
            return f"You have already guessed '{word}'."
        if word not in accepted():
            return f"'{word}' is not an English word."
        return None

    def _refuse(self, problem: str) -> str:
        self.invalid_guesses += 1
        self._invalid_in_a_row += 1
        if self._invalid_in_a_row < INVALID_IN_A_ROW:
            return f"{problem} Try another."
        self.done = True
        return f"{problem} Second invalid guess in a row: you lost."

    def _judge(self, word: str) -> str:
        marks = mark(self._secret, word)
        self.history.append((word, marks))
        self.guesses += 1
        self._invalid_in_a_row = 0
        self.best_greens = max(self.best_greens, marks.count(GREEN))
        self.won = word == self._secret
        self.done = self.won or self.guesses == self.max_guesses
        return f"{render(word, marks)}\n{self._standing()}"

    def _standing(self) -> str:
        if self.won:
            return "You won."
        if self.done:
            return f"You lost. The word was {self._secret}."
        left = self.max_guesses - self.guesses
        return f"{left} guess{'es' if left > 1 else ''} left."

    def _measure(self) -> dict[str, float]:
        return {
            "win": float(self.won),
            "guesses": float(self.guesses),
            "invalid_guesses": float(self.invalid_guesses),
        }
