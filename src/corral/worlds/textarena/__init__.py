"""Any game of TextArena as a world, found as ``textarena:ID``."""

from functools import partial

from corral.worlds.family import Family, read_name
from corral.worlds.needs import Needs
from corral.worlds.tasks import seeded_rows
from corral.worlds.textarena.env import TextArenaGame
from corral.worlds.textarena.loading import check_known
from corral.worlds.textarena.players import random_player
from corral.worlds.world import World

__all__ = ["FAMILY", "TextArenaGame", "game"]

NEEDS = Needs(
    requirements=("textarena==0.7.4", "numpy==2.4.6"),
    modules=("textarena",),
    size_mb=180,
    python=(3, 12),  # on 3.11 some of the games are syntax errors
    shared_as="textarena",
)


def game(name: str) -> World:
    """The world of a game.

    Args:
        name: An id of TextArena's, with arguments of :class:`TextArenaGame` if need be:
            ``TicTacToe-v0(player=1)``.

    Raises:
        UsageError: There is no such game, as far as that can be said here.
    """
    game_id, options = read_name(name)
    if NEEDS.are_met():
        check_known(game_id)
    tasks, evaluation_tasks = seeded_rows(f"Play {game_id}.\n\n")
    return World(
        name=f"textarena:{name}",
        summary=f"TextArena's {game_id}.",
        factory=partial(TextArenaGame, game_id, **options),
        tasks=tasks,
        evaluation_tasks=evaluation_tasks,
        policies={"random": random_player},
        needs=NEEDS,
    )


FAMILY = Family(
    name="textarena",
    summary="Any game of TextArena, against random players.",
    world=game,
    needs=NEEDS,
)
