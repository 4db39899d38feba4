"""Plays games in the interpreter that runs it: for worlds whose packages are in another one.

Reads jobs as JSON from standard input: ``{"world", "seed", "calls"}``, where calls are
``[tool, arguments]``, or null for the random player. Writes what came of them. Its argument says
how many are played at a time.
"""

import json
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from corral.errors import CorralError
from corral.worlds import PolicyAction, find_world
from corral.worlds.play import play_scripted

world_named = cache(find_world)
"""Games of one world share what it has started."""


def played(job: dict[str, Any]) -> dict[str, Any]:
    """A game as JSON; what refuses to be played says why."""
    try:
        world = world_named(job["world"])
        policy = world.policy("random") if job["calls"] is None else calling(job["calls"])
        row = {"prompt": "Play.", "seed": job["seed"]}
        game = play_scripted(world, policy, row, job["seed"], max_calls=1000)
    except CorralError as error:
        return {"refused": str(error)}
    return {
        "observation": game.observation,
        "texts": [turn.content for turn in game.turns],
        "errors": [turn.is_error for turn in game.turns],
        "outcome": str(game.outcome),
        "reward": game.reward,
        "won": game.is_win,
        "metrics": game.metrics,
        "error": game.error,
        "tools": game.tools,
    }


def calling(calls: list[Any]) -> Any:
    """A player that makes these calls, whatever it is told."""
    left = list(calls)

    def play(env: Any, last_text: str, rng: random.Random) -> PolicyAction | None:
        if not left:
            return None
        tool, arguments = left.pop(0)
        return PolicyAction(tool=tool, arguments=arguments)

    return play


if __name__ == "__main__":
    out = sys.stdout
    sys.stdout = sys.stderr  # where libraries may chat
    with ThreadPoolExecutor(int(sys.argv[1])) as threads:
        json.dump(list(threads.map(played, json.load(sys.stdin))), out)
