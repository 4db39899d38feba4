"""What happens around the steps of a run: evaluation, callbacks, the log, completions."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import torch
from transformers import EarlyStoppingCallback, TrainerCallback

from corral import GRPOConfig, GRPOTrainer, UsageError
from support.tiny_models import tiny_model, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
ROWS = [{"prompt": f"Task {number}.", "goal": number} for number in range(4)]
SHORT: dict[str, Any] = {
    "max_steps": 4,
    "per_device_train_batch_size": 4,
    "per_device_eval_batch_size": 4,
    "num_generations": 4,
    "max_completion_length": 8,
    "learning_rate": 1e-3,
}
TIMES = ("time", "per_second", "runtime")


class Place:
    """An environment with a tool."""

    def reset(self, goal: int, **row: Any) -> str:
        return f"Goal {goal}."

    def look(self) -> str:
        """Look."""
        return "nothing"


def by_length(completion_ids: list[list[int]], **_: Any) -> list[float]:
    return [len(ids) + sum(ids) % 7 / 7 for ids in completion_ids]


def made(folder: Path, reward: Any = by_length, **options: Any) -> GRPOTrainer:
    random.seed(0)
    model = tiny_model(TOKENIZER)
    torch.manual_seed(0)
    names = ("eval_dataset", "callbacks", "optimizers", "environment_factory")
    given = {name: options.pop(name) for name in names if name in options}
    return GRPOTrainer(
        model,
        reward,
        GRPOConfig(output_dir=str(folder), **(SHORT | options)),
        ROWS,
        processing_class=TOKENIZER,
        **given,
    )


def numbers(entry: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in entry.items() if not any(word in k for word in TIMES)}


def steps(trainer: GRPOTrainer) -> list[dict[str, Any]]:
    return [numbers(entry) for entry in trainer.state.log_history if "loss" in entry]


def evaluations(trainer: GRPOTrainer) -> list[dict[str, Any]]:
    history = trainer.state.log_history
    return [entry for entry in history if any(name.startswith("eval_") for name in entry)]


def weights(trainer: GRPOTrainer) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in trainer.model.parameters()])


class Recorder(TrainerCallback):
    """Writes down what it is told, and asks for what it is made to ask for."""

    def __init__(self, **asks: Any) -> None:
        self.events: list[tuple[str, int]] = []
        self.asks = asks
        self.given: dict[str, Any] = {}
        self.logs: list[dict[str, Any]] = []

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("on_"):
            return super().__getattribute__(name)

        def event(args: Any, state: Any, control: Any, **given: Any) -> Any:
            self.events.append((name, state.global_step))
            self.given = given
            if name == "on_log":
                self.logs.append(given["logs"])
            for switch, step in self.asks.items():
                if name == "on_step_end" and state.global_step == step:
                    setattr(control, switch, True)
            return control

        return event


# Evaluation


def test_evaluation_changes_nothing_of_training(tmp_path: Path) -> None:
    def with_luck(completion_ids: list[list[int]], **_: Any) -> list[float]:
        return [random.random() + torch.rand(()).item() for _ in completion_ids]

    plain = made(tmp_path / "plain", with_luck, environment_factory=Place)
    plain.train()
    watched = made(
        tmp_path / "watched",
        with_luck,
        environment_factory=Place,
        eval_dataset=ROWS[:2],
        eval_strategy="steps",
        eval_steps=1,
        eval_on_start=True,
        num_generations_eval=2,
    )
    watched.train()
    assert len(evaluations(watched)) == 5
    assert steps(watched) == steps(plain)
    assert torch.equal(weights(watched), weights(plain))
    names = [path.name for path in watched.run_folder.episodes_path.iterdir()]
    assert len(names) == 4


@pytest.mark.contract(43)
def test_evaluation_reports_what_training_reports(tmp_path: Path) -> None:
    trainer = made(tmp_path, eval_dataset=ROWS[:3], num_generations_eval=2)
    found = trainer.evaluate()
    for name in ("loss", "reward", "reward_std", "rewards/by_length/mean", "entropy", "num_tokens"):
        assert f"eval_{name}" in found
    assert found["eval_completions/mean_length"] > 0
    assert {"eval_runtime", "eval_samples_per_second"} <= set(found)
    assert trainer.state.num_tokens == 0
    assert trainer.evaluate()["eval_reward"] == found["eval_reward"]
    assert [e["step"] for e in trainer.state.log_history] == [0, 0]
    lines = trainer.run_folder.read_metrics()
    assert lines[0].metrics["eval_reward"] == found["eval_reward"]


@pytest.mark.report("P162")
def test_each_row_is_evaluated_as_often_as_asked(tmp_path: Path) -> None:
    seen: list[int] = []

    def counts(goal: list[int], **_: Any) -> list[float]:
        seen.extend(goal)
        return [float(number) for number in goal]

    trainer = made(tmp_path, counts, eval_dataset=ROWS[:3], num_generations_eval=2)
    assert trainer.evaluate()["eval_reward"] == 1.0
    assert sorted(seen) == [0, 0, 1, 1, 2, 2]


def test_data_sets_by_name_are_evaluated_one_by_one(tmp_path: Path) -> None:
    trainer = made(
        tmp_path,
        eval_dataset={"easy": ROWS[:1], "hard": ROWS[1:]},
        eval_strategy="epoch",
        max_steps=-1,
        num_train_epochs=1,
    )
    trainer.train()
    easy, hard = evaluations(trainer)
    assert "eval_easy_reward" in easy
    assert "eval_hard_reward" in hard
    assert (easy["step"], easy["epoch"]) == (4, 1.0)
    assert set(trainer.evaluate("hard", metric_key_prefix="test")) >= {"test_reward"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eval_strategy": "steps"}, "needs an eval_dataset"),
        (
            {"eval_strategy": "epoch", "eval_dataset": ROWS, "num_generations_eval": 3},
            "do not divide",
        ),
    ],
)
def test_an_evaluation_that_cannot_be_is_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        made(tmp_path, **options)


def test_nothing_to_evaluate_is_named(tmp_path: Path) -> None:
    trainer = made(tmp_path)
    with pytest.raises(UsageError, match="pass eval_dataset"):
        trainer.evaluate()
    with pytest.raises(UsageError, match="no rows"):
        trainer.evaluate([])


# Callbacks


def test_callbacks_are_told_everything_in_order(tmp_path: Path) -> None:
    recorder = Recorder()
    trainer = made(
        tmp_path,
        callbacks=[recorder],
        max_steps=2,
        save_steps=1,
        eval_dataset=ROWS[:1],
        eval_strategy="steps",
        eval_steps=2,
    )
    trainer.train()
    step = ["on_step_begin", "on_pre_optimizer_step", "on_optimizer_step", "on_step_end", "on_log"]
    assert [name for name, _ in recorder.events] == [
        *["on_init_end", "on_train_begin", "on_epoch_begin"],
        *step,
        *["on_save", *step],
        *["on_log", "on_evaluate", "on_epoch_end"],
        *["on_save", "on_log", "on_train_end"],
    ]
    assert recorder.given["model"] is trainer.model
    assert recorder.given["processing_class"] is TOKENIZER
    assert recorder.given["optimizer"] is trainer.learner.optimizer


def test_what_callbacks_ask_for_is_done(tmp_path: Path) -> None:
    asks = Recorder(should_log=1, should_evaluate=2, should_save=2, should_training_stop=3)
    trainer = made(
        tmp_path,
        callbacks=[asks],
        logging_strategy="no",
        eval_dataset=ROWS[:1],
    )
    output = trainer.train()
    assert output.global_step == trainer.state.global_step == 3
    assert [entry["step"] for entry in steps(trainer)] == [1, 3]
    assert [entry["step"] for entry in evaluations(trainer)] == [2]
    folder = trainer.session.checkpoint_folder
    assert sorted(path.name for path in folder.iterdir()) == ["checkpoint-2", "checkpoint-3"]


def test_a_run_stops_early_where_nothing_gets_better(tmp_path: Path) -> None:
    trainer = made(
        tmp_path,
        lambda completions: [1.0] * len(completions),
        callbacks=[EarlyStoppingCallback(early_stopping_patience=2)],
        max_steps=9,
        eval_dataset=ROWS[:1],
        eval_strategy="steps",
        eval_steps=1,
        metric_for_best_model="reward",
    )
    trainer.train()
    assert trainer.state.global_step == 3
    assert (trainer.state.best_metric, trainer.state.best_global_step) == (1.0, 1)


def test_callbacks_come_and_go(tmp_path: Path) -> None:
    trainer = made(tmp_path, callbacks=[Recorder], max_steps=1)
    recorder = trainer.pop_callback(Recorder)
    assert recorder.events == [("on_init_end", 0)]
    trainer.add_callback(recorder)
    trainer.remove_callback(Recorder)
    trainer.train()
    assert recorder.events == [("on_init_end", 0)]


def test_a_given_optimiser_and_schedule_are_used(tmp_path: Path) -> None:
    trainer = made(tmp_path / "none")
    parameters = list(trainer.model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.5)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
    given = GRPOTrainer(
        trainer.model,
        by_length,
        trainer.args.model_copy(update={"output_dir": str(tmp_path / "given"), "max_steps": 3}),
        ROWS,
        processing_class=TOKENIZER,
        optimizers=(optimizer, schedule),
    )
    given.train()
    assert [entry["learning_rate"] for entry in steps(given)] == [0.5, 0.25, 0.125]
    assert given.optimizer.optimizer is optimizer
    assert given.lr_scheduler is schedule
    assert trainer.lr_scheduler is None


# The log


@pytest.mark.contract(43)
def test_steps_between_two_entries_are_averaged(tmp_path: Path) -> None:
    every = made(tmp_path / "every")
    every.train()
    pairs = made(tmp_path / "pairs", logging_steps=2, callbacks=[recorder := Recorder()])
    pairs.train()
    single, double = steps(every), steps(pairs)
    assert [entry["step"] for entry in double] == [2, 4]
    for name in ("loss", "reward", "completions/mean_length"):
        expected = [(single[i][name] + single[i + 1][name]) / 2 for i in (0, 2)]
        assert [entry[name] for entry in double] == pytest.approx(expected)
    assert double[0]["grad_norm"] == single[1]["grad_norm"]
    assert double[-1]["num_tokens"] == single[-1]["num_tokens"]
    assert len(pairs.run_folder.read_metrics()) == 4
    assert [numbers(entry | {"step": 0})["loss"] for entry in recorder.logs[:2]] == [
        entry["loss"] for entry in double
    ]


def test_the_log_ends_with_a_summary_and_what_was_not_logged_yet(tmp_path: Path) -> None:
    trainer = made(tmp_path, logging_steps=3)
    output = trainer.train()
    last = trainer.state.log_history[-1]
    assert {"train_runtime", "train_steps_per_second", "train_samples_per_second"} <= set(last)
    assert last["train_loss"] == output.training_loss
    assert last["tools/call_frequency"] == 0.0  # of the fourth step
    assert output.metrics == last


@pytest.mark.report("P186")
@pytest.mark.contract(43)
def test_a_reward_that_never_applies_leaves_no_number(tmp_path: Path) -> None:
    calls: list[int] = []

    def at_first(completions: list[Any], **_: Any) -> list[Any]:
        calls.append(1)
        return [None if len(calls) > 1 else 2.0] * len(completions)

    def never(completions: list[Any], **_: Any) -> list[Any]:
        return [None] * len(completions)

    trainer = made(tmp_path, [at_first, never, by_length], max_steps=2, logging_steps=2)
    trainer.train()
    (entry,) = steps(trainer)
    assert entry["rewards/at_first/mean"] == 2.0
    assert "rewards/never/mean" not in entry
    assert all(value == value for value in entry.values())


ALWAYS = [
    *["num_tokens", "step_time", "reward", "reward_std", "frac_reward_zero_std", "entropy"],
    *[f"completions/{which}_length" for which in ("mean", "min", "max")],
    *[f"completions/{which}_terminated_length" for which in ("mean", "min", "max")],
    *["completions/clipped_ratio", "tools/call_frequency", "tools/failure_frequency"],
    *["rewards/by_length/mean", "rewards/by_length/std"],
    *[f"clip_ratio/{which}" for which in ("low_mean", "low_min", "high_mean", "high_max")],
    *["clip_ratio/region_mean", "loss", "grad_norm", "learning_rate", "epoch"],
    *[f"sampling/sampling_logp_difference/{which}" for which in ("mean", "max")],
    *[f"sampling/importance_sampling_ratio/{which}" for which in ("min", "mean", "max")],
]


@pytest.mark.contract(43)
@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, []),
        ({"beta": 0.1}, ["kl"]),
        ({"entropy_coef": 0.01}, ["policy_loss", "entropy_coef"]),
        ({"use_adaptive_entropy": True}, ["policy_loss", "entropy_coef", "entropy/bonus"]),
        ({"loss_type": "cispo", "epsilon_high": 3.0}, ["cispo_clip_ratio"]),
        ({"loss_type": "vespo"}, ["vespo/phi_seq_mean"]),
    ],
    ids=["always", "reference", "entropy bonus", "adaptive bonus", "cispo", "vespo"],
)
@pytest.mark.contract(43)
def test_every_number_of_the_contract_is_logged(
    tmp_path: Path, options: dict[str, Any], names: list[str]
) -> None:
    trainer = made(tmp_path, max_steps=1, **options)
    trainer.train()
    logged = set(trainer.state.log_history[0])
    always = ALWAYS
    if "loss_type" in options:
        always = [name for name in ALWAYS if not name.startswith("clip_ratio")]
    assert set(always + names) <= logged
    assert set(evaluated_names(trainer, always + names)) <= set(trainer.evaluate(ROWS[:1]))


def evaluated_names(trainer: GRPOTrainer, names: list[str]) -> list[str]:
    absent = ("grad_norm", "learning_rate", "epoch", "step_time")
    return [f"eval_{name}" for name in names if name not in absent]


def test_the_log_goes_on_after_a_resume(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "logging_steps": 3,
        "save_steps": 2,
        "eval_dataset": ROWS[:1],
        "eval_strategy": "steps",
        "eval_steps": 1,
        "metric_for_best_model": "reward",
        "max_steps": 6,
    }
    stopping = {"callbacks": [EarlyStoppingCallback(early_stopping_patience=50)]}
    whole = made(tmp_path / "whole", **options, **stopping)
    whole.train()
    first = made(tmp_path / "parts", **options, callbacks=[Recorder(should_training_stop=2)])
    first.add_callback(EarlyStoppingCallback(early_stopping_patience=50))
    first.train()
    second = made(tmp_path / "parts", **options, **stopping)
    second.train(resume_from_checkpoint=True)
    assert steps(second) == steps(whole)
    assert len(evaluations(second)) == 6
    assert second.state.best_metric == whole.state.best_metric
    counters = [
        trainer.pop_callback(EarlyStoppingCallback).early_stopping_patience_counter
        for trainer in (second, whole)
    ]
    assert counters[0] == counters[1]


# Completions


def with_columns(completion_ids: Any, log_extra: Any, log_metric: Any, **_: Any) -> list[float]:
    log_extra("first", [ids[0] for ids in completion_ids])
    log_metric("halves", 0.5)
    return by_length(completion_ids)


@pytest.mark.contract(44)
def test_completions_are_a_table_of_the_contract(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = made(
        tmp_path,
        with_columns,
        log_completions=True,
        num_completions_to_print=1,
        logging_steps=2,
        environment_factory=Place,
    )
    trainer.train()
    folder = tmp_path / "completions"
    assert sorted(path.name for path in folder.iterdir()) == [
        "completions_00002.parquet",
        "completions_00004.parquet",
    ]
    table = pyarrow.parquet.read_table(folder / "completions_00002.parquet")
    names = ["step", "prompt", "completion", "with_columns", "first", "advantage"]
    assert table.column_names == names
    rows = table.to_pylist()
    assert [row["step"] for row in rows] == [2] * 4
    assert rows[0]["prompt"][0]["content"].startswith("Task ")
    assert rows[0]["completion"][0]["role"] == "assistant"
    assert sum(row["advantage"] for row in rows) == pytest.approx(0, abs=1e-5)
    assert trainer.state.log_history[0]["halves"] == 0.5
    shown = capsys.readouterr().out
    assert shown.count("Step 2: 4 completions, the first 1 shown") == 1
    assert shown.count("Goal") == 2


@pytest.mark.contract(44)
def test_without_being_asked_completions_are_not_written(tmp_path: Path) -> None:
    made(tmp_path, max_steps=1).train()
    assert not (tmp_path / "completions").exists()


def test_a_table_that_cannot_be_written_does_not_end_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "completions").write_text("in the way")
    made(tmp_path, max_steps=1, log_completions=True).train()
    assert "The completions of step 1 are not logged" in caplog.text


def test_metrics_and_state_are_written_where_asked(tmp_path: Path) -> None:
    trainer = made(tmp_path, max_steps=1)
    trainer.save_metrics("train", trainer.train().metrics)
    trainer.save_state()
    assert json.loads((tmp_path / "train_results.json").read_text())["step"] == 1
    state = json.loads((tmp_path / "trainer_state.json").read_text())
    assert state["log_history"] == trainer.state.log_history
    assert trainer.is_world_process_zero()
