"""A game of OpenSpiel as an environment class: one seat is the model's, the others are scripted."""

import random
from typing import Any, Literal

from corral.worlds.openspiel.loading import is_open, load

Opponent = Literal["random", "first", "last"]
"""Which legal action the other seats take."""

MAX_PLIES = 400
"""Moves of all seats; a random game of chess can have more."""


class OpenSpielGame:
    """A game from one seat. It needs ``pip install 'corral[openspiel]'``.

    ::

        game = OpenSpielGame("tic_tac_toe", opponent="first")
        print(game.reset(seed=7))    # the board, and the legal actions
        game.play("x(1,1)")          # ... after the answer of the other player
        game.get_reward()            # once it is over: 0 lost, 0.5 drawn, 1 won
    """

    def __init__(
        self,
        game: str = "tic_tac_toe",
        *,
        player: int = 0,
        opponent: Opponent = "random",
        max_plies: int = MAX_PLIES,
    ) -> None:
        """
        Args:
            game: A name that OpenSpiel knows, with parameters if need be: ``catch(rows=8)``.
            player: The model's seat.
            opponent: How all other seats play.
            max_plies: Moves of all seats after which the game is broken off.

        Raises:
            UsageError: The game cannot be played here; the message says why.
        """
        self._game = load(game, player)
        self._name, self._player, self._opponent = game, player, opponent
        self._max_plies = max_plies
        self._start(seed=0)
        self.done = True  # until a first reset there is no game to play

    def reset(self, seed: int, **kwargs: Any) -> str:
        """Begin a game; all its chance, and random opponents, are drawn from the seed.

        Args:
            seed: Of the game.
            kwargs: Other columns of the row; not used.
        """
        self._start(seed)
        news = self._others_play()
        return self._shown(news)

    def play(self, action: str) -> str:
        """Take one of the legal actions.

        Args:
            action: The action, as it is listed.
        """
        if self.done:
            raise ValueError("Game over.")
        found = _found(action, self.legal_actions)
        if found is None:
            self.illegal_actions += 1
            self._measure()
            return f"{action!r} is no legal action. {self._choices()}"
        self._apply(found)
        return self._shown(self._others_play())

    def get_reward(self) -> float:
        """The share of what the game can give: 0 the worst result, 1 the best; 0 if unfinished."""
        if not self._state.is_terminal():
            return 0.0
        least, most = self._game.min_utility(), self._game.max_utility()
        own = self._state.returns()[self._player]
        return (own - least) / (most - least) if most > least else 0.0

    @property
    def legal_actions(self) -> dict[str, int]:
        """The model's actions by their text, as OpenSpiel numbers them."""
        actions = [] if self.done else self._state.legal_actions(self._player)
        names = [self._state.action_to_string(self._player, one) for one in actions]
        return {_plain(name): one for name, one in zip(names, actions, strict=True)}

    @property
    def open_state(self) -> Any:
        """OpenSpiel's state, in a game that hides nothing from any seat; else None."""
        return self._state if is_open(self._game) else None

    def _start(self, seed: int) -> None:
        self._state: Any = self._game.new_initial_state()
        self._rng = random.Random(f"openspiel {seed}")
        self.done = False
        self.won = False
        self.plies = 0
        self.illegal_actions = 0
        self._measure()

    def _others_play(self) -> list[str]:
        """Let chance and the other seats play until it is the model's turn; what they did."""
        news: list[str] = []
        while not self._state.is_terminal() and self.plies < self._max_plies:
            seat = self._state.current_player()
            if seat == self._player:
                break
            if self._state.is_chance_node():
                self._apply(self._drawn())
                continue
            action = self._chosen(seat)
            if is_open(self._game):
                news.append(f"Player {seat} played {self._state.action_to_string(seat, action)}.")
            self._apply(action)
        self.done = self._state.is_terminal() or self.plies >= self._max_plies
        self.won = self._state.is_terminal() and self._lead() > 0
        self._measure()
        return news

    def _apply(self, action: int) -> None:
        self.plies += not self._state.is_chance_node()
        self._state.apply_action(action)

    def _drawn(self) -> int:
        actions, chances = zip(*self._state.chance_outcomes(), strict=True)
        return self._rng.choices(actions, chances)[0]

    def _chosen(self, seat: int) -> int:
        actions = self._state.legal_actions(seat)
        if self._opponent == "random":
            return self._rng.choice(actions)
        return actions[0 if self._opponent == "first" else -1]

    def _lead(self) -> float:
        """The model's return beyond the best of the others, or beyond 0 where it plays alone."""
        returns = list(self._state.returns())
        return returns.pop(self._player) - max(returns, default=0.0)

    def _shown(self, news: list[str]) -> str:
        return "\n".join([*news, self._board().strip("\n"), self._standing()])

    def _board(self) -> str:
        """What the model's seat may know."""
        if is_open(self._game):
            return str(self._state)
        if self._game.get_type().provides_information_state_string:
            return self._state.information_state_string(self._player)
        return self._state.observation_string(self._player)

    def _standing(self) -> str:
        if not self.done:
            return self._choices()
        if not self._state.is_terminal():
            return "The game is broken off. Game over."
        lead = self._lead()
        verdict = "You won" if lead > 0 else "You lost" if lead < 0 else "A draw"
        return f"{verdict}. Game over."

    def _choices(self) -> str:
        return f"You are player {self._player}. Legal actions: {', '.join(self.legal_actions)}"

    def _measure(self) -> None:
        self.metrics: dict[str, float] = {
            "win": float(self.won),
            "plies": float(self.plies),
            "illegal_actions": float(self.illegal_actions),
        }


def _found(asked: str, actions: dict[str, int]) -> int | None:
    """The action meant: as it is written, else in any case (in chess ``b`` and ``B`` are two)."""
    name = _plain(asked)
    alike = [one for text, one in actions.items() if text.lower() == name.lower()]
    return actions.get(name, alike[0] if len(alike) == 1 else None)


def _plain(name: str) -> str:
    return " ".join(name.split())
