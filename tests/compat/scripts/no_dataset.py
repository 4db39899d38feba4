"""No dataset and no reward function: the environment brings its tasks and scores itself."""

import os

from trl import GRPOConfig, GRPOTrainer


class Counter:
    def __init__(self):
        self.games = 0

    def reset(self, **kwargs) -> str:
        self.games += 1
        self.goal, self.count = 2 + self.games, 0
        return f"Count to {self.goal}."

    def increment(self, step: int = 1) -> str:
        """Add to the counter.

        Args:
            step: How much to add.
        """
        self.count += step
        return f"The counter is at {self.count}."

    async def get_reward(self) -> float | None:
        return None if self.count == 0 else 1.0 - abs(self.goal - self.count) / self.goal


trainer = GRPOTrainer(
    model=os.environ["MODEL"],
    environment_factory=Counter,
    args=GRPOConfig(
        output_dir=os.environ["OUTPUT_DIR"],
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=200,
        max_steps=3,
        logging_steps=1,
        report_to="none",
        bf16=False,
    ),
)
trainer.train()
trainer.end()
