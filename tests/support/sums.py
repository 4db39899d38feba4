"""A game, rewards and data in files, as users of recipes have them."""

import json
from pathlib import Path
from typing import Any

import yaml

GAME = '''
class Sum:
    """Add numbers up."""

    def reset(self, start: int, **kwargs) -> str:
        self.total = start
        return f" Start at {start}."

    def add(self, n: int) -> int:
        """Add a number.

        Args:
            n: The number.
        """
        self.total += n
        return self.total
'''
REWARDS = """
def reached(environments, goal, **kwargs):
    print("scored", len(environments))
    return [float(env.total == want) for env, want in zip(environments, goal)]


def short(completion_ids, **kwargs):
    return [-float(len(ids)) for ids in completion_ids]
"""
RECIPE: dict[str, Any] = {
    "name": "sums",
    "environment": "game.py:Sum",
    "model": "tiny",
    "grpo": {
        "dataset": "goals.jsonl",
        "rewards": ["rewards.py:reached", "rewards.py:short"],
        "train": {
            "max_steps": 1,
            "num_generations": 2,
            "per_device_train_batch_size": 2,
            "max_completion_length": 8,
            "reward_weights": [1.0, 0.5],
        },
    },
    "evaluation": {"games": 1},
}
TALKS = [
    {
        "messages": [
            {"role": "user", "content": f"Double {n}."},
            {"role": "assistant", "content": f"{2 * n}."},
        ]
    }
    for n in range(6)
]


def write_sums(folder: Path) -> None:
    """Write the game, its rewards, rows to play and talks to learn from, and a recipe of it all."""
    (folder / "game.py").write_text(GAME)
    (folder / "rewards.py").write_text(REWARDS)
    goals = [{"prompt": "Reach the goal.", "start": n, "goal": n + 3} for n in range(4)]
    (folder / "goals.jsonl").write_text("".join(json.dumps(row) + "\n" for row in goals))
    (folder / "talks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in TALKS))
    (folder / "sums.yaml").write_text(yaml.safe_dump(RECIPE))
