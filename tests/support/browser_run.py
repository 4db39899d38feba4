"""Plays 20 browser episodes, six at a time, and says what ran meanwhile and after, as JSON."""

import asyncio
import json
import os
import random
import sys
from typing import Any

from corral.hosting import find_environment
from corral.worlds.browser import KEPT_S
from support.process_table import descendants, listening_ports, wait_until

EPISODES = 20
AT_A_TIME = 6
SERVING = 2
"""The server and its supervisor."""


async def main() -> None:
    """Play, look at the processes when the last browser has waited in vain, and print."""
    world = find_environment("browser", max_sessions=AT_A_TIME)
    room = asyncio.Semaphore(AT_A_TIME)
    lock = asyncio.Lock()
    seen: dict[str, Any] = {"pids": set(), "ports": set()}

    async def play(row: dict[str, Any]) -> bool:
        async with room:
            async with lock:  # the first one starts the server
                env = world.factory()
            text = await env.reset(**row)
            while (action := world.policy("solver")(env, text, random.Random(0))) is not None:
                text = await getattr(env, action.tool)(**action.arguments)
            below = descendants(os.getpid())
            seen["pids"] |= set(below)
            seen["ports"] |= listening_ports(set(below))
            assert await env.get_reward() == float(env.won)
            await env.close()
            return env.won

    rows = world.evaluation_tasks(EPISODES)
    won = await asyncio.gather(*map(play, rows))
    wait_until(lambda: not zombies(), within_s=KEPT_S / 2)  # one that has just ended is none
    waiting = zombies()
    wait_until(lambda: len(descendants(os.getpid())) <= SERVING, within_s=KEPT_S + 20)
    told = {
        "won": sum(won),
        "lost": [row["task"] for row, is_won in zip(rows, won, strict=True) if not is_won],
        "pids": sorted(seen["pids"]),
        "ports": sorted(seen["ports"]),
        "left": len(descendants(os.getpid())),
        "zombies": waiting + zombies(),
    }
    json.dump(told, sys.stdout)


def zombies() -> list[int]:
    """Processes below this one that have ended and that nobody has asked how."""
    return [pid for pid, state in descendants(os.getpid()).items() if state == "Z"]


if __name__ == "__main__":
    asyncio.run(main())
