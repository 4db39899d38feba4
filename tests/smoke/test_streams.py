"""Training and evaluating on rows that are read as they come."""

from pathlib import Path
from typing import Any

import datasets
import pytest
import torch

from corral import GRPOConfig, GRPOTrainer
from support.tiny_models import tiny_model, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
ROWS = [{"prompt": f"Task {number}.", "number": number} for number in range(5)]


def by_parity(completion_ids: list[list[int]], number: list[int], **_: Any) -> list[float]:
    return [
        sum(token % (2 + task) for token in ids) / len(ids)
        for ids, task in zip(completion_ids, number, strict=True)
    ]


def streamed() -> Any:
    return datasets.Dataset.from_list(ROWS).to_iterable_dataset()


def trainer(folder: Path, data: Any, **options: Any) -> GRPOTrainer:
    chosen: dict[str, Any] = {
        "max_steps": 4,
        "per_device_train_batch_size": 4,
        "per_device_eval_batch_size": 4,
        "num_generations": 2,
        "max_completion_length": 8,
        "learning_rate": 1e-2,
        "save_steps": 1,
    }
    return GRPOTrainer(
        tiny_model(TOKENIZER),
        by_parity,
        GRPOConfig(output_dir=str(folder), **(chosen | options)),
        data,
        processing_class=TOKENIZER,
        eval_dataset=streamed(),
    )


def weights(made: GRPOTrainer) -> torch.Tensor:
    return torch.cat([each.detach().flatten().clone() for each in made.model.parameters()])


@pytest.mark.contract(42)
def test_a_stream_in_order_teaches_what_its_rows_teach(tmp_path: Path) -> None:
    listed = trainer(tmp_path / "listed", ROWS, shuffle_dataset=False)
    read = trainer(tmp_path / "read", streamed(), shuffle_dataset=False)
    before = weights(read)
    for made in (listed, read):
        made.train()
    assert torch.equal(weights(read), weights(listed))
    assert not torch.equal(weights(read), before)
    assert (read.state.epoch, read.state.max_steps) == (1.0, 4)


@pytest.mark.report("P167")
@pytest.mark.contract(42)
@pytest.mark.parametrize("passes", [1, 2])
def test_a_resumed_run_leaves_out_the_rows_that_were_played(tmp_path: Path, passes: int) -> None:
    """Two tasks a generation, so the third generation is in the second pass over the data."""
    options = {"num_iterations": passes, "max_steps": 4 * passes}
    whole = trainer(tmp_path / "whole", streamed(), **options)
    whole.train()
    first = trainer(tmp_path / "parts", streamed(), **options)
    first.state.max_steps = passes
    first.train()
    rest = trainer(tmp_path / "parts", streamed(), **options)
    rest.train(resume_from_checkpoint=True)
    assert torch.equal(weights(rest), weights(whole))
    assert played(rest) == played(whole)
    assert len({number for step in played(whole) for number in step}) > 2


def played(made: GRPOTrainer) -> list[list[Any]]:
    """The tasks of each generation."""
    return [
        [saved.episode.task.columns["number"] for saved in file.read()]
        for file in made.run_folder.episode_files("grpo")
    ]


def test_an_evaluation_reads_its_stream_each_time(tmp_path: Path) -> None:
    made = trainer(tmp_path, streamed(), eval_strategy="steps", eval_steps=2)
    made.train()
    found = [entry["eval_reward"] for entry in made.state.log_history if "eval_reward" in entry]
    assert len(found) == 2
    listed = made.evaluate(ROWS)
    assert made.evaluate()["eval_reward"] == listed["eval_reward"]
