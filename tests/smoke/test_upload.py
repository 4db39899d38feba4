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


class Runs:
    """A process that makes one run after the other."""

    def __init__(self, hub: Hub, folder: Path) -> None:
        own = {
            "HF_ENDPOINT": hub.url,
            "HF_TOKEN": TOKEN,
            "HF_HUB_OFFLINE": "0",
            "HF_HOME": str(folder / "hf"),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        self._said = (folder / "stderr").open("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.uploading_run"],
            env=os.environ | own,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )

    def __call__(self, folder: Path, **settings: Any) -> str:
        """What the run wrote on standard error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        before = self._said.seek(0, os.SEEK_END)
        print(json.dumps({"folder": str(folder), **settings}), file=self._process.stdin, flush=True)
        is_done = any(line == "done\n" for line in self._process.stdout)
        self._said.seek(before)
        said = self._said.read()
        assert is_done, said[-3000:]
        return said

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._said.close()


@pytest.fixture(scope="module")
def served() -> Iterator[Hub]:
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def hub(served: Hub) -> Hub:
    """As if no run had been there."""
    served.forget()
    return served


@pytest.fixture(scope="module")
def run(served: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    runs = Runs(served, tmp_path_factory.mktemp("runs"))
    yield runs
    runs.end()


def test_a_model_is_uploaded_with_its_card_and_nothing_else(
    hub: Hub, run: Runs, tmp_path: Path
) -> None:
    run(tmp_path, hub_model_id="me/player", hub_private_repo=True)
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


def test_every_checkpoint_is_uploaded_where_asked(hub: Hub, run: Runs, tmp_path: Path) -> None:
    run(
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


def test_a_hub_that_refuses_does_not_cost_the_training(hub: Hub, run: Runs, tmp_path: Path) -> None:
    hub.refuses = True
    errors = run(tmp_path, push_to_hub=True)
    assert "trainer.push_to_hub() to try again" in errors
    assert (tmp_path / "my-run" / "checkpoints" / "grpo" / "checkpoint-2").is_dir()


def test_completions_are_uploaded_as_a_data_set(hub: Hub, run: Runs, tmp_path: Path) -> None:
    run(tmp_path, log_completions=True, log_completions_hub_repo="me/talk")
    talk = [body for _, path, body in hub.requests if "/datasets/me/talk/commit/" in path]
    assert len(talk) == 1
    assert b"completions_00002.parquet" in talk[0]
