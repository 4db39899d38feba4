"""Any game of OpenSpiel as a world, found as ``openspiel:NAME``."""

from functools import partial

from corral.worlds.family import Family
from corral.worlds.openspiel.env import MAX_PLIES, OpenSpielGame, Opponent
from corral.worlds.openspiel.loading import is_open, load
from corral.worlds.openspiel.players import random_player, searcher
from corral.worlds.policy import Policy
from corral.worlds.tasks import seeded_rows
from corral.worlds.world import World

__all__ = ["FAMILY", "OpenSpielGame", "game"]


def game(
    name: str, *, player: int = 0, opponent: Opponent = "random", max_plies: int = MAX_PLIES
) -> World:
    """The world of a game, see :class:`OpenSpielGame` for the arguments.

    Raises:
        UsageError: The game cannot be played here; the message says why.
        MissingExtraError: OpenSpiel is not installed.
    """
    loaded = load(name, player)
    policies: dict[str, Policy] = {"random": random_player}
    if is_open(loaded):
        policies["solver"] = searcher()
    seats = loaded.num_players()
    others = f" against {seats - 1} {opponent} player{'s' * (seats > 2)}" if seats > 1 else ""
    tasks, evaluation_tasks = seeded_rows(f"Play {name}.\n")
    return World(
        name=f"openspiel:{name}",
        summary=f"OpenSpiel's {loaded.get_type().long_name}{others}.",
        factory=partial(OpenSpielGame, name, player=player, opponent=opponent, max_plies=max_plies),
        tasks=tasks,
        evaluation_tasks=evaluation_tasks,
        policies=policies,
    )


FAMILY = Family(
    name="openspiel",
    summary="Any game of OpenSpiel, against scripted players.",
    world=game,
)
