"""Counters stand beside every step, and a run with nothing left to train stops and says why."""

import json
from pathlib import Path
from typing import Any

import pytest

from corral import GRPOConfig, GRPOTrainer, UsageError
from corral.track import RunFolder, write_report
from corral.training.checkpoint import checkpoints
from corral.training.counters import PATIENCE
from support.tiny_models import tiny_model, tiny_tokenizer
from support.toy_tokenizers import byte_level_tokenizer

COUNTERS = {
    "tokens/trainable",
    "episodes/dropped",
    "episodes/forked",
    "turns/fallback",
    "tools/malformed",
}


class Bell:
    """One tool, no reward of its own."""

    def reset(self, **row: Any) -> None: ...

    def ring(self) -> str:
        """Ring the bell."""
        return "ding"


def trainer(folder: Path, reward: Any, *, tokenizer: Any = None, **settings: Any) -> GRPOTrainer:
    tokenizer = tokenizer or tiny_tokenizer()
    sizes: dict[str, Any] = {"per_device_train_batch_size": 4, "num_generations": 4}
    return GRPOTrainer(
        tiny_model(tokenizer),
        reward,
        GRPOConfig(output_dir=str(folder), **(sizes | settings)),
        [{"prompt": "Ring."}],
        processing_class=tokenizer,
        environment_factory=Bell,
    )


def by_length(completions: list[Any], **kwargs: Any) -> list[float]:
    return [float(number) for number in range(len(completions))]


def unjudged(completions: list[Any], **kwargs: Any) -> list[None]:
    return [None] * len(completions)


@pytest.mark.parametrize(
    ("reward", "settings", "why"),
    [
        (by_length, {"mask_truncated_completions": True}, "4 cut off and masked: raise max_compl"),
        (unjudged, {}, "4 without a reward"),
    ],
)
@pytest.mark.report("P023", "P066")
def test_a_run_without_trainable_tokens_stops_keeps_its_steps_and_says_why(
    tmp_path: Path, reward: Any, settings: dict[str, Any], why: str
) -> None:
    made = trainer(
        tmp_path, reward, max_completion_length=1, max_steps=PATIENCE + 2, save_steps=0, **settings
    )
    with pytest.raises(UsageError, match=why):
        made.train()
    assert made.state.global_step == PATIENCE
    (kept,) = checkpoints(made.session.checkpoint_folder)
    assert kept.name == f"checkpoint-{PATIENCE}"
    lines = made.run_folder.read_metrics()
    assert [line.metrics["tokens/trainable"] for line in lines] == [0.0] * PATIENCE


def test_every_step_counts_and_summary_and_report_add_up(tmp_path: Path) -> None:
    # A template without a place for tools, so that Corral's own writes every conversation.
    tokenizer = byte_level_tokenizer(chat_template=None)
    made = trainer(tmp_path, by_length, tokenizer=tokenizer, max_completion_length=6, max_steps=2)
    made.train()
    lines = made.run_folder.read_metrics()
    assert all(line.metrics.keys() >= COUNTERS for line in lines)
    sampled = sum(line.metrics["tokens/sampled"] for line in lines)
    run = RunFolder(tmp_path)
    run.write_summary(asked={})
    counted = json.loads(run.summary_path.read_text())["counters"]["grpo"]
    assert counted["tokens/trainable"] == sampled > 0
    assert counted["turns/fallback"] == 8
    assert f"trainable tokens {sampled:,.0f}, dropped 0" in write_report(run).read_text()
