"""A run that reports to trackio: ``python -m support.trackio_run FOLDER``.

trackio reads where its data goes (TRACKIO_DIR) when it is imported, hence a process of its own.
"""

import sys
from pathlib import Path
from typing import Any

from corral import GRPOConfig, GRPOTrainer
from support.tiny_models import tiny_model, tiny_tokenizer


def lengths(completion_ids: list[list[int]], **_: Any) -> list[float]:
    return [len(ids) + sum(ids) % 7 / 7 for ids in completion_ids]


def main(folder: Path) -> None:
    tokenizer = tiny_tokenizer()
    trainer = GRPOTrainer(
        tiny_model(tokenizer),
        lengths,
        GRPOConfig(
            output_dir=str(folder / "my-run"),
            max_steps=2,
            per_device_train_batch_size=4,
            num_generations=4,
            max_completion_length=8,
            report_to="trackio",
            project="my-project",
            log_completions=True,
        ),
        [{"prompt": "Play."}],
        processing_class=tokenizer,
    )
    trainer.train()
    trainer.end()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
