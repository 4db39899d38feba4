"""A world whose package wants an old version of another: it lives in an environment of its own.

Named by its path, so that the served process finds it without this folder on its own path.
"""

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from corral.worlds import Needs, PolicyAction, World

PACKAGE = Path(__file__).with_name("gong_package")
SPEC = f"{__file__}:WORLD"


class Gong:
    """Strike the gong just right."""

    def reset(self, limit: int, **row: Any) -> str:
        self.limit, self.strikes, self.won = limit, 0, False
        return f"A gong that bears {limit}."

    def strike(self, force: int) -> str:
        """Strike the gong.

        Args:
            force: How hard.
        """
        from gong import strike

        self.strikes += 1
        sound = strike(force, self.limit)
        self.won = sound == "boom"
        return sound

    def look(self) -> str:
        """Look at the gong: the process it hangs in, one beside it, and a version."""
        from gong import packaging_version

        beside = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        return f"{os.getpid()} {beside.pid} {packaging_version}"

    def get_reward(self) -> float:
        """1 for a boom."""
        return float(self.won)

    @property
    def done(self) -> bool:
        """Whether it boomed, or has had enough."""
        return self.won or self.strikes == 3

    @property
    def metrics(self) -> dict[str, float]:
        """How often it was struck."""
        return {"strikes": float(self.strikes)}


def tasks(seed: int, count: int) -> list[dict[str, Any]]:
    """Rows with limits from 1 to 9."""
    rng = random.Random(seed)
    return [{"prompt": "Strike it. ", "limit": rng.randint(1, 9)} for _ in range(count)]


def solver(env: Any, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player that reads how much the gong bears, and strikes too softly now and then."""
    if env.done:
        return None
    said = last_text.rstrip(".").rpartition(" ")[2]
    force = int(said) - (rng.random() < 0.3) if said.isdigit() else rng.randint(1, 9)
    return PolicyAction(tool="strike", arguments={"force": force})


def random_player(env: Any, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player that strikes anyhow."""
    if env.done:
        return None
    return PolicyAction(tool="strike", arguments={"force": rng.randint(1, 9)})


WORLD = World(
    name="gong",
    summary="Strike a gong just right.",
    factory=Gong,
    tasks=tasks,
    evaluation_tasks=lambda count: tasks(0, count),
    is_win=lambda env: env.won,
    policies={"random": random_player, "solver": solver},
    needs=Needs(requirements=(str(PACKAGE),), modules=("gong",), size_mb=80, max_sessions=4),
)
