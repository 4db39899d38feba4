"""The smallest environment: a tool that repeats, and a reward that reads its state."""

import os

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer


class Echo:
    def reset(self, **kwargs) -> str | None:
        self.heard = ""
        return None

    def echo(self, message: str) -> str:
        """Says it twice.

        Args:
            message: What to say.
        """
        self.heard = message
        return message * 2


def length_reward(environments, **kwargs):
    return [float(len(environment.heard)) for environment in environments]


dataset = Dataset.from_list(
    [{"prompt": [{"role": "user", "content": f"Say {word}."}]} for word in ("hi", "yes", "no", "ö")]
)
trainer = GRPOTrainer(
    model=os.environ["MODEL"],
    reward_funcs=length_reward,
    train_dataset=dataset,
    environment_factory=Echo,
    args=GRPOConfig(
        output_dir=os.environ["OUTPUT_DIR"],
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=200,
        num_train_epochs=2,
        logging_steps=1,
        report_to="none",
        bf16=False,
    ),
)
trainer.train()
trainer.end()
