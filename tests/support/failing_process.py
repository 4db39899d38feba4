"""A run whose second process fails alone: ``python -m support.failing_process FOLDER WHAT``.

``reward``: its reward function raises in training. ``reset``: none of its episodes can be played;
with ``every reset``, none of either process.
``evaluation``: its reward function raises in an evaluation, of which the first process plays less.
Started by ``test_processes.py`` with the variables that launchers set.
"""

import sys
from pathlib import Path
from typing import Any

from corral import GRPOConfig, GRPOTrainer
from corral.training.processes import make_accelerator
from support.tiny_models import tiny_model, tiny_tokenizer


def main(folder: Path, what: str) -> None:
    is_second = make_accelerator(GRPOConfig()).process_index == 1
    evaluations: list[int] = []

    class World:
        def reset(self, **row: Any) -> None:
            if (is_second and what == "reset") or what == "every reset":
                raise ValueError("no world here")

    def reward(completion_ids: Any, is_evaluation: Any = None, **_: Any) -> list[float]:
        is_now = is_evaluation is not None
        evaluations.append(is_now)
        if is_second and what == ("evaluation" if is_now else "reward"):
            raise ValueError("no reward here")
        return [float(len(ids)) for ids in completion_ids]

    tokenizer = tiny_tokenizer()
    trainer = GRPOTrainer(
        tiny_model(tokenizer),
        reward,
        GRPOConfig(
            output_dir=str(folder),
            max_steps=4,
            num_generations=4,
            per_device_train_batch_size=4,
            per_device_eval_batch_size=4,
            max_completion_length=8,
            eval_strategy="steps",
            eval_steps=1,
        ),
        [{"prompt": "Go."}, {"prompt": "Come."}],
        eval_dataset=[{"prompt": f"Task {n}.", "is_evaluation": True} for n in range(3)],
        processing_class=tokenizer,
        environment_factory=World,
    )
    trainer.train()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
