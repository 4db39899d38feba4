"""Play a model in a world and count what came of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from corral.records import Episode, Task
from corral.rollout import Player, RewardFunction, score


@dataclass(frozen=True, slots=True, kw_only=True)
class GameResult:
    """What one game came to, whoever played it."""

    is_won: bool
    reward: float | None
    """None: the game is not scored."""
    is_fault: bool
    """Whether it says nothing about the player, because something else failed."""
    has_valid_call: bool
    """Whether at least one tool call was executed without an error."""
    metrics: Mapping[str, float]
    """What the environment counted."""
    name: str | None = None
    """Of the game, where several are played."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The result of some games, each a different task, played once."""

    games: int
    """Games played, faults included."""
    wins: int
    """Games the world counts as won."""
    mean_reward: float | None
    """Over scored games; None when there are none."""
    valid_call_share: float
    """Share of games with at least one tool call that was executed."""
    faults: int
    """Games that say nothing about the model, because something else failed."""
    guesses_per_win: float | None
    """Moves of won games, for worlds that report ``guesses``; None without."""
    invalid_guesses: int | None
    """Moves the world refused, for worlds that report ``invalid_guesses``; None without."""
    by_game: Mapping[str, tuple[int, int]]
    """Games and wins of each game, where several are played."""
    seconds: float
    """Wall time."""

    def as_row(self) -> dict[str, Any]:
        """The numbers as they stand in ``summary.json``."""
        names = [name for name in self.__slots__ if name not in ("by_game", "seconds")]
        row = {name: getattr(self, name) for name in names}
        for name, (games, wins) in self.by_game.items():
            row |= {f"games/{name}": games, f"wins/{name}": wins}
        return row


async def play_games(
    player: Player,
    tasks: Sequence[Task],
    *,
    is_win: Callable[[Task, Any], bool],
    functions: Sequence[RewardFunction] = (),
) -> tuple[list[Episode], list[bool]]:
    """Play each task once; returns the scored episodes and whether each was won.

    Args:
        is_win: Whether the environment, after the episode of a task, was won.
        functions: Rewards besides the environment's own.
    """
    played = await player.play(tasks, members=1)
    scored = await score(played, functions)
    episodes = [group.episodes[0] for group in scored.groups]
    wins = [
        not episode.outcome.is_fault()
        and environment is not None
        and is_win(episode.task, environment)
        for episode, group in zip(episodes, played, strict=True)
        for environment in group.environments
    ]
    return episodes, wins


def result_of(episode: Episode, *, is_won: bool, name: str | None = None) -> GameResult:
    """What the game of a model came to."""
    return GameResult(
        is_won=is_won,
        reward=episode.reward,
        is_fault=episode.outcome.is_fault(),
        has_valid_call=episode.tools.has_success(),
        metrics=episode.metrics,
        name=name,
    )


def summarise(games: Sequence[GameResult], seconds: float) -> Evaluation:
    """Count games of different tasks, played once each in ``seconds`` of wall time."""
    rewards = [game.reward for game in games if game.reward is not None]
    won = [game for game in games if game.is_won]
    moves = [game.metrics["guesses"] for game in won if "guesses" in game.metrics]
    refused = [g.metrics["invalid_guesses"] for g in games if "invalid_guesses" in g.metrics]
    by_name: dict[str, list[bool]] = {}
    for game in games:
        if game.name is not None:
            by_name.setdefault(game.name, []).append(game.is_won)
    valid = sum(game.has_valid_call for game in games)
    return Evaluation(
        games=len(games),
        wins=len(won),
        mean_reward=fmean(rewards) if rewards else None,
        valid_call_share=valid / len(games) if games else 0.0,
        faults=sum(game.is_fault for game in games),
        guesses_per_win=fmean(moves) if moves else None,
        invalid_guesses=round(sum(refused)) if refused else None,
        by_game={name: (len(each), sum(each)) for name, each in sorted(by_name.items())},
        seconds=seconds,
    )
