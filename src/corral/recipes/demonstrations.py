"""Games of a world's own player as conversations to learn from."""

from typing import Any

from corral.env import prepare
from corral.recipes.recipe import WarmupSection
from corral.rollout.seeds import derive
from corral.worlds import World
from corral.worlds.play import demonstration, play_together


def solver_conversations(
    world: World, section: WarmupSection, *, seed: int
) -> list[dict[str, Any]]:
    """Rows of ``messages`` and ``tools``, one a game; the same seed gives the same rows."""
    kind = prepare(world.factory)
    tasks = world.tasks(seed, section.games)
    seeds = [derive(seed, "game", index) for index in range(len(tasks))]
    games = play_together(world, world.policy(section.policy), tasks, seeds, kind=kind)
    return [
        {
            "messages": demonstration(
                game, with_thoughts=section.with_reasoning, last_word=section.last_word
            ),
            "tools": list(kind.tools.schemas),
        }
        for game in games
    ]
