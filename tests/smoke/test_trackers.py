"""What trackers get, with the real packages: tensorboard, wandb without a network, trackio."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral import GRPOConfig, GRPOTrainer
from corral.errors import MissingExtraError, UsageError
from corral.training import trackers
from support.tiny_models import tiny_model, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
TOKEN = "hf_not-a-real-token"


def reward(completion_ids: list[list[int]], **_: Any) -> list[float]:
    return [len(ids) + sum(ids) % 7 / 7 for ids in completion_ids]


def trainer(folder: Path, *trackers: str, **options: Any) -> GRPOTrainer:
    return GRPOTrainer(
        tiny_model(TOKENIZER),
        reward,
        GRPOConfig(
            output_dir=str(folder / "my-run"),
            max_steps=2,
            per_device_train_batch_size=4,
            per_device_eval_batch_size=4,
            num_generations=4,
            max_completion_length=8,
            report_to=list(trackers),
            hub_token=TOKEN,
            **options,
        ),
        [{"prompt": "Play."}],
        eval_dataset=[{"prompt": "Play."}],
        processing_class=TOKENIZER,
    )


def test_tensorboard_gets_training_and_evaluation(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    made = trainer(tmp_path, "tensorboard", eval_strategy="steps", eval_steps=2)
    made.train()
    made.end()
    events = EventAccumulator(str(tmp_path / "my-run" / "tensorboard")).Reload()
    rewards = [point.value for point in events.Scalars("train/reward")]
    logged = [entry["reward"] for entry in made.state.log_history if "reward" in entry]
    assert rewards == pytest.approx(logged)
    assert [point.step for point in events.Scalars("eval/reward")] == [2]
    (text,) = events.Tensors("args/text_summary")
    (settings,) = text.tensor_proto.string_val
    assert b'"num_generations": 4' in settings
    assert TOKEN.encode() not in settings


@pytest.mark.contract(44)
def test_wandb_gets_numbers_and_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import wandb

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    logged: list[dict[str, Any]] = []
    log = wandb.Run.log

    def logs(run: Any, data: dict[str, Any], *more: Any, **options: Any) -> None:
        logged.append(data)
        log(run, data, *more, **options)

    monkeypatch.setattr(wandb.Run, "log", logs)
    made = trainer(tmp_path, "wandb", log_completions=True)
    made.train()
    assert wandb.run is not None
    assert wandb.run.name == "my-run"
    assert wandb.config["num_generations"] == 4
    assert TOKEN not in json.dumps(dict(wandb.config), default=str)
    rewards = [data["train/reward"] for data in logged if "train/reward" in data]
    assert rewards == [e["reward"] for e in made.state.log_history if "reward" in e]
    tables = [data["completions"] for data in logged if "completions" in data]
    assert tables[0].columns == ["step", "prompt", "completion", "reward", "advantage"]
    assert tables[0].data[0][1].startswith("USER: Play.")
    made.end()
    assert wandb.run is None
    (run,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert TOKEN.encode() not in run.read_bytes()


@pytest.mark.contract(44)
def test_trackio_gets_numbers_and_the_table(tmp_path: Path) -> None:
    home = tmp_path / "trackio"
    done = subprocess.run(
        [sys.executable, "-m", "support.trackio_run", str(tmp_path)],
        env=os.environ | {"TRACKIO_DIR": str(home), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    with sqlite3.connect(home / "my-project.db") as database:
        found = database.execute("SELECT run_name, metrics FROM metrics ORDER BY id").fetchall()
    assert {name for name, _ in found} == {"my-run"}
    entries = [json.loads(metrics) for _, metrics in found]
    assert len([entry for entry in entries if "train/reward" in entry]) == 2
    tables = [entry["completions"]["_value"] for entry in entries if "completions" in entry]
    assert [len(table) for table in tables] == [4, 4]
    assert tables[0][0]["prompt"] == "USER: Play."


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine on which nobody is logged in anywhere."""
    import wandb

    for name in ("WANDB_MODE", "WANDB_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    wandb.teardown()
    yield
    wandb.teardown()


@pytest.mark.usefixtures("nobody")
def test_a_tracker_that_may_not_send_is_told_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"report_to='wandb': No API key.*WANDB_MODE=offline"):
        trainer(tmp_path, "wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    trainer(tmp_path, "wandb")
    with pytest.raises(UsageError, match=r"report_to='trackio' sends to 'me/board' .*HF_TOKEN"):
        trainer(tmp_path, "trackio", trackio_space_id="me/board")
    trainer(tmp_path, "trackio")


def test_a_tracker_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trackers, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"report_to='wandb' .*pip install wandb"):
        trainer(tmp_path, "wandb")
