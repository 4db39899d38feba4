"""A game of TextArena as an environment class: one seat is the model's."""

import random
from collections.abc import Iterable
from typing import Any

from corral.errors import EnvironmentFault, UsageError
from corral.worlds.textarena.chance import OwnChance
from corral.worlds.textarena.loading import make
from corral.worlds.textarena.players import Opponent, random_move

MAX_MOVES = 400
"""Moves of all seats, after which a game is broken off."""
_MOST_PLAYERS = 15


class TextArenaGame:
    """A game from one seat.

    ::

        game = TextArenaGame("TicTacToe-v0")
        print(game.reset(seed=7))    # the rules and the board
        game.play("[4]")             # ... after the answer of the other player
        game.get_reward()            # -1 lost, 0 drawn, 1 won
    """

    def __init__(
        self,
        game_id: str,
        *,
        player: int = 0,
        players: int | None = None,
        opponent: Opponent = random_move,
    ) -> None:
        """
        Args:
            game_id: As TextArena knows it.
            player: The model's seat.
            players: How many play; by default the fewest that the game takes.
            opponent: How all other seats play; by default a random one of the moves they are shown.

        Raises:
            UsageError: There is no such game, or no such seat.
        """
        self._chance = OwnChance()
        with self._chance.used():
            self._env = make(game_id)
            self._players = _players_of(self._env, game_id, players)
        if not 0 <= player < self._players:
            raise UsageError(f"player={player}: {game_id} has the seats 0 to {self._players - 1}.")
        self._player, self._opponent = player, opponent
        self._begin()
        self.done = True  # until a first reset there is no game

    def reset(self, seed: int = 0, **row: Any) -> str:
        """Begin a game.

        Args:
            seed: Of the game, and of random opponents.
            row: Other columns of the row; not used.
        """
        self._begin()
        self._chance.seed(seed)
        self._rng = random.Random(f"textarena {seed}")
        with self._chance.used():
            self._env.reset(num_players=self._players, seed=seed)
            self._others_play()
            return self._news()

    def play(self, move: str) -> str:
        """Make your move.

        Args:
            move: The move, written as the game asks for it.
        """
        if self.done:
            raise ValueError("Game over.")
        with self._chance.used():
            self._step(move)
            self._others_play()
            return self._news()

    def get_reward(self) -> float:
        """TextArena's reward of the seat; -1, as for a lost game, if it is not over."""
        return self.reward

    @property
    def _state(self) -> Any:
        return self._env.state

    def _begin(self) -> None:
        self.done = False
        self.won = False
        self.reward = -1.0
        self.moves = 0
        self.invalid_moves = 0
        self._reason: str | None = None
        """Why the game ended as it did, if it says so."""
        self._measure()

    def _step(self, move: str) -> None:
        seat = self._state.current_player_id
        over, _ = self._env.step(action=move)
        self.moves += 1
        is_own_again = not over and getattr(self._state, "error_count", 0) > 0
        self.invalid_moves += seat == self._player and is_own_again
        self.done = bool(over) or self.moves >= MAX_MOVES
        if over:
            self._settle()
        self._measure()

    def _settle(self) -> None:
        rewards, info = self._env.close()
        scores = {seat: _score(value) for seat, value in (rewards or {}).items()}
        self.reward = scores.pop(self._player, 0.0)
        others = scores.values()
        self.won = self.reward > max(others) if others else self.reward >= 1.0
        own = info.get(self._player, {})
        self.invalid_moves += bool(own.get("invalid_move"))
        told = (rewards or {}).get(self._player)
        self._reason = told if isinstance(told, str) else own.get("reason")

    def _others_play(self) -> None:
        while not self.done and self._state.current_player_id != self._player:
            seat = self._state.current_player_id
            self._step(self._opponent(_text(self._messages(), seat, self._names()), self._rng))

    def _news(self) -> str:
        """What the model's seat was told since it was last asked."""
        if not self.done:
            return _text(self._messages(), self._player, self._names())
        observations = self._state.observations
        told, observations[self._player] = observations[self._player], []
        shown = _text(told, self._player, self._names())
        if self.moves >= MAX_MOVES:
            return f"{shown}\nThe game is broken off."
        verdict = f"Game over. Your reward is {self.reward:g}."
        return "\n".join(filter(None, [shown, self._reason, verdict]))

    def _messages(self) -> list[Any]:
        """What the seat to move is told, of the game beneath all wrappers."""
        env = self._env
        while "env" in vars(env):
            env = env.env
        seat, messages = env.get_observation()
        if not isinstance(messages, list):
            raise EnvironmentFault(f"TextArena told seat {seat} {messages!r:.80}: no messages.")
        return messages

    def _names(self) -> dict[int, str]:
        return self._state.role_mapping

    def _measure(self) -> None:
        self.metrics: dict[str, float] = {
            "win": float(self.won),
            "moves": float(self.moves),
            "invalid_moves": float(self.invalid_moves),
        }


def _players_of(env: Any, game_id: str, players: int | None) -> int:
    """How many play: those asked for, or the fewest with which a game begins."""
    counts = range(1, _MOST_PLAYERS + 1) if players is None else [players]
    problem: Exception | None = None
    for count in counts:
        try:
            env.reset(num_players=count, seed=0)
        except Exception as error:  # noqa: BLE001 - games refuse a number of players in many ways
            problem = error
        else:
            # Games for any number also begin with one, who then plays for ever.
            if count > 1 or players == 1 or type(env.state).__name__ == "SinglePlayerState":
                return count
    told = "any number of players" if players is None else f"players={players}"
    raise UsageError(f"{game_id} does not begin with {told}: {problem}")


def _score(reward: Any) -> float:
    """A reward; some games give the reason of an invalid move in its place."""
    return float(reward) if isinstance(reward, int | float) else -1.0


def _text(messages: Iterable[Any], seat: int, names: dict[int, str]) -> str:
    """Messages as text, but for the seat's own moves and boards that another board replaces."""
    # Some games write text where the kind of a message belongs.
    told = [(speaker, said, getattr(kind, "name", "")) for speaker, said, kind in messages]
    boards = [place for place, (_, _, kind) in enumerate(told) if kind == "GAME_BOARD"]
    lines: list[str] = []
    for place, (speaker, said, kind) in enumerate(told):
        is_own_move = kind == "PLAYER_ACTION" and speaker in (seat, -1)
        if is_own_move or (place in boards[:-1]):
            continue
        lines.append(said if speaker == -1 else f"[{names.get(speaker, speaker)}] {said}")
    return "\n".join(line.strip("\n") for line in lines)
