"""Runs that upload to the Hub, one for each line of JSON on standard input: folder and settings.

The Hub's client reads where the Hub is (HF_ENDPOINT) when it is imported, hence a process of its
own; importing takes the longest, hence one for several runs. Each ends with a line ``done``.
"""

import json
import sys
from pathlib import Path
from typing import Any

from corral import GRPOConfig, GRPOTrainer
from support.tiny_models import save_tiny_model


def lengths(completion_ids: list[list[int]], **_: Any) -> list[float]:
    return [len(ids) + sum(ids) % 7 / 7 for ids in completion_ids]


def main(folder: Path, **settings: Any) -> None:
    trainer = GRPOTrainer(
        str(save_tiny_model(folder / "tiny")),
        lengths,
        GRPOConfig(
            output_dir=str(folder / "my-run"),
            max_steps=2,
            per_device_train_batch_size=4,
            num_generations=4,
            max_completion_length=8,
            **settings,
        ),
        [{"prompt": "Play."}],
    )
    trainer.train()
    if not trainer.args.push_to_hub:
        trainer.push_to_hub("By hand", dataset_name="me/data", tags=["mine"])
    trainer.end()


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        main(Path(asked.pop("folder")), **asked)
        sys.stdout.write("done\n")
        sys.stdout.flush()
