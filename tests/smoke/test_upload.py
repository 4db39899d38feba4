"""What a run sends to the Hub, with the Hub's real client against a Hub that runs here."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load

from support.fake_hub import Hub

TOKEN = "hf_not-a-real-token"
MODEL_FILES = {"config.json", "model.safetensors", "tokenizer.json", "README.md"}
PRIVATE = ("metrics", "episodes", "checkpoints", "completions")


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def run(hub: Hub, folder: Path, **settings: Any) -> str:
    """What the run wrote on standard error."""
    own = {
        "HF_ENDPOINT": hub.url,
        "HF_TOKEN": TOKEN,
        "HF_HUB_OFFLINE": "0",
        "HF_HOME": str(folder / "hf"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    values = [f"{name}={json.dumps(value)}" for name, value in settings.items()]
    done = subprocess.run(
        [sys.executable, "-m", "support.uploading_run", str(folder), *values],
        env=os.environ | own,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def test_a_model_is_uploaded_with_its_card_and_nothing_else(hub: Hub, tmp_path: Path) -> None:
    run(hub, tmp_path, hub_model_id="me/player", hub_private_repo=True)
    files = hub.committed()
    assert set(files) >= MODEL_FILES
    assert not [name for name in files if any(word in name for word in PRIVATE)]
    assert load(files["model.safetensors"])
    (created,) = [json.loads(body) for body in hub.bodies("/repos/create")]
    assert created["name"] == "player"
    assert created.get("private") is True or created.get("visibility") == "private"
    card = files["README.md"].decode()
    assert "base_model:" in card
    assert "- grpo" in card
    assert "- mine" in card
    assert "- me/data" in card
    assert b"By hand" in hub.bodies("/commit/")[0]
    assert hub.tokens == {f"Bearer {TOKEN}"}
    assert not any(TOKEN.encode() in content for content in files.values())


def test_every_checkpoint_is_uploaded_where_asked(hub: Hub, tmp_path: Path) -> None:
    run(
        hub,
        tmp_path,
        push_to_hub=True,
        hub_strategy="checkpoint",
        save_steps=1,
        hub_always_push=True,
    )
    *steps, last = hub.commits()
    assert len(steps) == 2
    assert all("last-checkpoint/state.json" in commit for commit in steps)
    assert "model.safetensors" in last
    (created, *_) = [json.loads(body) for body in hub.bodies("/repos/create")]
    assert created["name"] == "my-run"


def test_a_hub_that_refuses_does_not_cost_the_training(hub: Hub, tmp_path: Path) -> None:
    hub.refuses = True
    errors = run(hub, tmp_path, push_to_hub=True)
    assert "trainer.push_to_hub() to try again" in errors
    assert (tmp_path / "my-run" / "checkpoints" / "grpo" / "checkpoint-2").is_dir()


def test_completions_are_uploaded_as_a_data_set(hub: Hub, tmp_path: Path) -> None:
    run(hub, tmp_path, log_completions=True, log_completions_hub_repo="me/talk")
    talk = [body for _, path, body in hub.requests if "/datasets/me/talk/commit/" in path]
    assert len(talk) == 1
    assert b"completions_00002.parquet" in talk[0]
