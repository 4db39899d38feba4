"""A game of several turns that says by an exception that it is over, and scores itself."""

import os

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer


class HigherLower:
    def reset(self, secret: int, **kwargs) -> str:
        self.secret, self.guesses, self.is_over = secret, 0, False
        return f" It is between 1 and {2 * secret}."

    def guess(self, number: int) -> str:
        """Guess the number.

        Args:
            number: The guess.
        """
        if self.is_over:
            raise ValueError("Game over.")
        self.guesses += 1
        if number == self.secret:
            self.is_over = True
            return "Right."
        return "Higher." if number < self.secret else "Lower."

    def history(self) -> dict:
        """How the game went so far."""
        return {"guesses": self.guesses, "over": self.is_over}

    def get_reward(self) -> float:
        return 1 / self.guesses if self.is_over else 0.0


def politeness(completions, **kwargs):
    return [float("Thanks" in completion[-1]["content"]) for completion in completions]


dataset = Dataset.from_list(
    [
        {
            "prompt": [
                {"role": "system", "content": "You play games."},
                {"role": "user", "content": "Find the number."},
            ],
            "secret": secret,
        }
        for secret in (5, 8)
    ]
)
trainer = GRPOTrainer(
    model=os.environ["MODEL"],
    reward_funcs=[politeness],
    train_dataset=dataset,
    environment_factory=HigherLower,
    args=GRPOConfig(
        output_dir=os.environ["OUTPUT_DIR"],
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        num_generations=4,
        max_completion_length=500,
        max_tool_calling_iterations=4,
        max_steps=2,
        reward_weights=[0.25],
        logging_steps=1,
        report_to="none",
        bf16=False,
    ),
)
trainer.train()
trainer.end()
