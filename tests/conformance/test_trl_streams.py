"""From an iterable dataset, prompts come in the order in which TRL 1.16 takes them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest

from corral import GRPOConfig
from corral.training.batching import plan_batches
from corral.training.playing import task_source
from support.tiny_models import save_tiny_model

trl = pytest.importorskip("trl", reason="TRL is not installed")

OPTIONS: dict[str, Any] = {
    "max_steps": 3,
    "per_device_train_batch_size": 4,
    "num_generations": 2,
    "num_iterations": 2,
    "gradient_accumulation_steps": 3,
    "seed": 7,
}
REPEATS = 3 * 2


def numbered(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"prompt": [{"role": "user", "content": f"Task {number}."}], "number": number}


def constant(completions: list[Any], **_: Any) -> list[float]:
    return [0.0] * len(completions)


@pytest.mark.contract(42)
@pytest.mark.parametrize("is_shuffled", [True, False], ids=["shuffled", "in order"])
def test_streamed_prompts_come_in_the_order_of_trl(tmp_path: Path, is_shuffled: bool) -> None:
    count = 1100  # more than the shuffle's buffer holds
    data = datasets.IterableDataset.from_generator(numbered, gen_kwargs={"count": count})
    options = OPTIONS | {"shuffle_dataset": is_shuffled}
    theirs = trl.GRPOTrainer(
        str(save_tiny_model(tmp_path / "model")),
        constant,
        trl.GRPOConfig(
            output_dir=str(tmp_path), report_to="none", use_cpu=True, bf16=False, **options
        ),
        data,
    ).get_train_dataloader()
    config = GRPOConfig(**options)
    plan = plan_batches(config, 1)
    ours = task_source(data, {}, config, per_generation=plan.tasks)
    generation = 0
    for epoch in range(2):
        theirs.set_epoch(epoch)
        batches = [[row["number"] for row in batch] for batch in theirs]
        assert len(batches) == count // plan.tasks * REPEATS
        for start in range(0, len(batches), REPEATS):
            tasks = [task.columns["number"] for task in ours.tasks(generation)]
            expected = [number for number in tasks for _ in range(2)]
            assert batches[start : start + REPEATS] == [expected] * REPEATS
            generation += 1
