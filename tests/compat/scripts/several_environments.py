"""Several games in one class, chosen by a column; each has a reward that is None for the others."""

import os

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer


class Games:
    def reset(self, game: str, word: str = "", **kwargs) -> str:
        self.game, self.word, self.answer, self.total = game, word, "", 0
        return f" Spell {word} backwards." if game == "spelling" else " Add up to 10."

    def spell(self, letters: str) -> str:
        """Answer in the spelling game.

        Args:
            letters: The answer.
        """
        if self.game != "spelling":
            raise ValueError("This is another game.")
        self.answer = letters
        return f"You spelled {letters}."

    def add(self, number: int) -> int:
        """Add a number in the adding game.

        Args:
            number: What to add.
        """
        if self.game != "adding":
            raise ValueError("This is another game.")
        self.total += number
        return self.total


def spelling_reward(environments, **kwargs):
    return [
        float(one.answer == one.word[::-1]) if one.game == "spelling" else None
        for one in environments
    ]


def adding_reward(environments, game, **kwargs):
    return [
        -abs(one.total - 10.0) if name == "adding" else None
        for one, name in zip(environments, game, strict=True)
    ]


rows = [
    {"game": "spelling", "word": "abc"},
    {"game": "adding", "word": ""},
    {"game": "spelling", "word": "tea"},
    {"game": "adding", "word": ""},
]
dataset = Dataset.from_list(
    [{"prompt": [{"role": "user", "content": f"Game {i}."}], **row} for i, row in enumerate(rows)]
)
trainer = GRPOTrainer(
    model=os.environ["MODEL"],
    reward_funcs=[spelling_reward, adding_reward],
    train_dataset=dataset,
    environment_factory=Games,
    args=GRPOConfig(
        output_dir=os.environ["OUTPUT_DIR"],
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=300,
        max_steps=2,
        reward_weights=[1.0, 0.1],
        logging_steps=1,
        report_to="none",
        bf16=False,
    ),
)
trainer.train()
trainer.end()
