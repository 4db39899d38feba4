"""Two games in one environment class, of which a column chooses one."""

from typing import Any, Literal

from corral.worlds.catch import Catch
from corral.worlds.wordle import Wordle

Game = Literal["wordle", "catch"]


class WordleAndCatch:
    """Wordle or Catch, as the row says; the tools of both are there.

    ::

        games = WordleAndCatch()
        games.reset(env="wordle", secret="stone")
        games.guess("crane")       # as in Wordle
        games.stay()               # ValueError: This is wordle, ...
        games.reward_parts         # {"wordle": 0.2, "catch": None}
    """

    def __init__(self) -> None:
        self._games: dict[str, Any] = {"wordle": Wordle(), "catch": Catch()}
        self.env: Game = "wordle"
        """Which game is played."""

    def reset(self, env: Game, **row: Any) -> str | None:
        """Start a game.

        Args:
            env: Which one.
            row: Its own columns.
        """
        if env not in self._games:
            raise ValueError(f"env={env!r}: must be one of {', '.join(self._games)}.")
        self.env = env
        return self.game.reset(**row)

    def guess(self, word: str) -> str:
        return self._only("wordle").guess(word)

    def move(self, direction: Literal["left", "right"]) -> str:
        return self._only("catch").move(direction)

    def stay(self) -> str:
        return self._only("catch").stay()

    guess.__doc__ = Wordle.guess.__doc__
    move.__doc__ = Catch.move.__doc__
    stay.__doc__ = Catch.stay.__doc__

    @property
    def game(self) -> Any:
        """The game that is played."""
        return self._games[self.env]

    @property
    def done(self) -> bool:
        """Whether the game is over."""
        return self.game.done

    @property
    def won(self) -> bool:
        """Whether it was won."""
        return self.game.won

    @property
    def metrics(self) -> dict[str, float]:
        """Those of the game."""
        return self.game.metrics

    @property
    def reward_parts(self) -> dict[str, float | None]:
        """The reward of each game; None for the one that is not played."""
        rewards = dict[str, float | None].fromkeys(self._games)
        return {**rewards, self.env: self.game.get_reward()}

    def get_reward(self) -> float:
        """The reward of the game that is played."""
        return self.game.get_reward()

    def _only(self, game: Game) -> Any:
        """The game, if it is played; what a tool of another game raises is for the model."""
        if self.env != game:
            raise ValueError(f"This is {self.env}, which has no such tool.")
        return self.game
