"""Games of a world's own player as conversations to learn from."""

from typing import Any

from corral.env import prepare
from corral.recipes.recipe import WarmupSection
from corral.rollout.seeds import derive
from corral.worlds import World
from corral.worlds.play import demonstration, play_scripted


def solver_conversations(
    world: World, section: WarmupSection, *, seed: int
) -> list[dict[str, Any]]:
    """Rows of ``messages`` and ``tools``, one a game; the same seed gives the same rows."""
    kind = prepare(world.factory)
    policy = world.policy(section.policy)
    rows: list[dict[str, Any]] = []
    for index, task in enumerate(world.tasks(seed, section.games)):
        game = play_scripted(world, policy, task, derive(seed, "game", index), kind=kind)
        messages = demonstration(
            game, with_thoughts=section.with_reasoning, last_word=section.last_word
        )
        rows.append({"messages": messages, "tools": list(kind.tools.schemas)})
    return rows
