"""Counters stand beside every step, and a run with nothing left to train stops and says why."""

import json
from pathlib import Path
from typing import Any

import pytest

from corral import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer, UsageError
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


@pytest.mark.contract(32)
@pytest.mark.report("P053")
def test_what_no_reward_function_scores_is_told_in_one_line_a_generation(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def some(completions: list[Any], **kwargs: Any) -> list[float | None]:
        return [None, None, *by_length(completions[2:])]

    trainer(tmp_path, some, max_completion_length=4, max_steps=2).train()
    told = [record.getMessage() for record in caplog.records]
    assert [line for line in told if "no reward" in line] == [
        f"Step {step}: no reward applies to 2 of 4 episodes (train_dataset[0]), which teach "
        "nothing."
        for step in (1, 2)
    ]


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


def sft(folder: Path, rows: list[dict[str, Any]], **settings: Any) -> SFTTrainer:
    """One row a step, in the order of the data."""
    tokenizer = tiny_tokenizer()
    args = SFTConfig(
        output_dir=str(folder),
        per_device_train_batch_size=1,
        shuffle_dataset=False,
        train_sampling_strategy="sequential",
        **settings,
    )
    return SFTTrainer(tiny_model(tokenizer), args, rows, processing_class=tokenizer)


def asked(question: str, answer: str = "Yes.") -> dict[str, Any]:
    return {"prompt": question, "completion": answer}


def test_fine_tuning_counts_tokens_and_rows_and_summary_and_report_have_them(
    tmp_path: Path,
) -> None:
    rows = [asked("Is it?"), asked("p" * 500), asked("Is it?", "Yes. " * 100), asked("Is it?")]
    made = sft(tmp_path, rows, max_length=50, num_train_epochs=2)
    made.train()
    lines = [line.metrics for line in made.run_folder.read_metrics()]
    assert len(lines) == 6, "the row without a token to learn is no step"
    steps = [made.batches.step(number) for number in range(3)]
    blocks = [row.trained_tokens() for step in steps for block in step for row in block]
    assert [line["tokens/trainable"] for line in lines] == blocks * 2
    assert {(line["rows/dropped"], line["rows/truncated"]) for line in lines} == {(1.0, 2.0)}
    run = RunFolder(tmp_path)
    run.write_summary(asked={})
    counted = json.loads(run.summary_path.read_text())["counters"]["sft"]
    assert counted == {
        "tokens/trainable": 2 * sum(blocks),
        "rows/dropped": 1,
        "rows/truncated": 2,
    }
    assert "rows without a token to learn 1, rows cut 2" in write_report(run).read_text()


@pytest.mark.parametrize(("strategy", "truncated"), [("bfd", 1), ("bfd_split", 0), ("wrapped", 0)])
def test_packed_rows_are_cut_by_one_strategy_only(
    tmp_path: Path, strategy: str, truncated: int
) -> None:
    made = sft(
        tmp_path,
        [{"text": "a" * 30}, {"text": "b" * 90}],
        max_length=60,
        packing=True,
        packing_strategy=strategy,
    )
    assert made.tally.as_metrics() == {"rows/dropped": 0.0, "rows/truncated": float(truncated)}


@pytest.mark.report("P023")
def test_fine_tuning_without_a_token_to_learn_stops_keeps_its_steps_and_says_why(
    tmp_path: Path,
) -> None:
    masked = {"input_ids": [5] * 20, "labels": [-100] * 20}
    learned = {"input_ids": [5] * 20, "labels": [5] * 20}
    rows = [learned, masked, masked, learned, *[masked] * (PATIENCE + 2)]
    made = sft(tmp_path, rows, packing=True, max_length=20, num_train_epochs=1)
    with pytest.raises(UsageError, match=rf"{PATIENCE} steps in a row had no token.* 7 have none"):
        made.train()
    assert made.state.global_step == 4 + PATIENCE
    assert checkpoints(made.session.checkpoint_folder)[-1].name == f"checkpoint-{4 + PATIENCE}"
    trained = [line.metrics["tokens/trainable"] for line in made.run_folder.read_metrics()]
    assert trained == [19.0, 0.0, 0.0, 19.0, 0.0, 0.0, 0.0]
