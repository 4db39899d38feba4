"""Environments by name: a column says which of them plays a row, and each has its own tools."""

import os
from functools import partial

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer


class Counter:
    def __init__(self, start: int = 0):
        self.start = start

    def reset(self, prompt, goal, **kwargs) -> str:
        assert not {"environment"} & set(kwargs)
        self.goal, self.count = goal, self.start
        return f" You start at {self.start}."

    def increment(self, step: int) -> str:
        """Add to the counter.

        Args:
            step: How much to add.
        """
        self.count += step
        return str(self.count)

    def get_reward(self) -> float:
        return float(self.count == self.goal)


class Notes:
    def reset(self, **kwargs) -> None:
        self.notes = []

    def note(self, text: str) -> str:
        """Write something down.

        Args:
            text: What to write.
        """
        self.notes.append(text)
        return f"{len(self.notes)} notes"

    def nothing(self) -> None:
        """Do nothing."""


def tidy(environments, environment, **kwargs):
    return [
        float(len(one.notes)) if name == "notes" else None
        for one, name in zip(environments, environment, strict=True)
    ]


dataset = Dataset.from_list(
    [
        {
            "prompt": [{"role": "user", "content": f"Task {goal}."}],
            "environment": "notes" if goal % 2 else "counter",
            "goal": goal,
        }
        for goal in range(4)
    ]
)
trainer = GRPOTrainer(
    model=os.environ["MODEL"],
    reward_funcs=tidy,
    train_dataset=dataset,
    environment_factory={"counter": partial(Counter, 1), "notes": Notes},
    args=GRPOConfig(
        output_dir=os.environ["OUTPUT_DIR"],
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=400,
        max_steps=2,
        logging_steps=1,
        report_to="none",
        bf16=False,
    ),
)
trainer.train()
trainer.end()
