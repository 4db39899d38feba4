"""A run that is killed, wherever that was, and resumed is the run that was never killed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from corral.track import RunFolder

RECIPE = """
name = "mini"
environment = "wordle"
[model]
kind = "scratch"
hidden_size = 48
layers = 2
heads = 2
intermediate_size = 64
max_context = 512
[sft]
games = 400
with_reasoning = false
last_word = ""
[sft.train]
max_steps = 60
per_device_train_batch_size = 8
learning_rate = 1e-2
lr_scheduler_type = "cosine"
warmup_steps = 3
save_steps = 20
[grpo]
tasks = 24
[grpo.train]
max_steps = 9
per_device_train_batch_size = 24
num_generations = 4
max_completion_length = 90
max_turn_length = 30
stop_when_done = true
temperature = 0.8
learning_rate = 2e-4
save_steps = 3
[evaluation]
games = 5
"""

TIMINGS = ("time", "seconds", "per_second")
PATIENCE_S = 150


def start(folder: Path, *options: str) -> "subprocess.Popen[str]":
    (folder / "mini.toml").write_text(RECIPE)
    return subprocess.Popen(
        [sys.executable, "-m", "corral.cli.main", "train", "mini.toml", *options],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(folder: Path, *options: str) -> RunFolder:
    process = start(folder, *options)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors[-3000:]
    return RunFolder(folder / "runs" / "mini")


def kill_when(folder: Path, happened: Callable[[RunFolder], bool], *options: str) -> None:
    """Start or resume the run and kill it without notice once something happened."""
    run = RunFolder(folder / "runs" / "mini")
    process = start(folder, *options)
    limit = time.monotonic() + PATIENCE_S
    while not happened(run):
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < limit, "nothing to kill it for"
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def at_step(stage: str, step: int, then_s: float) -> Callable[[RunFolder], bool]:
    """A moment after a step was logged."""

    def happened(run: RunFolder) -> bool:
        if not any(line.step >= step for line in run.read_metrics(stage)):
            return False
        time.sleep(then_s)
        return True

    return happened


def at_save(stage: str, step: int) -> Callable[[RunFolder], bool]:
    """In the middle of writing a checkpoint, or at least before anything follows it."""

    def happened(run: RunFolder) -> bool:
        folder = run.checkpoints_path / stage
        names = (f".draft-checkpoint-{step}", f"checkpoint-{step}")
        return any((folder / name).exists() for name in names)

    return happened


def numbers(run: RunFolder) -> list[tuple[str, int, dict[str, Any]]]:
    return [
        (
            line.stage,
            line.step,
            {k: v for k, v in line.metrics.items() if not any(word in k for word in TIMINGS)},
        )
        for line in run.read_metrics()
    ]


def games(run: RunFolder) -> dict[tuple[str, int], list[Any]]:
    return {
        (file.stage, file.step): [
            (saved.episode.transcript, saved.episode.rewards, saved.advantage)
            for saved in file.read()
        ]
        for file in run.episode_files()
    }


def stages(run: RunFolder) -> list[dict[str, Any]]:
    rows = json.loads(run.summary_path.read_text())["stages"]
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


def check_there_is_something_to_compare(run: RunFolder) -> None:
    """Games of several turns and updates of the weights: otherwise equality would be cheap."""
    lines = [(step, metrics) for stage, step, metrics in numbers(run) if stage == "grpo"]
    assert [step for step, _ in lines] == list(range(1, 10))
    assert all(metrics["grad_norm"] > 0.1 for _, metrics in lines)
    assert all(metrics["episodes/turns"] > 1.5 for _, metrics in lines)


@pytest.mark.report("P167")
@pytest.mark.timeout(600)
def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    whole = finish(tmp_path / "whole")
    chance = random.Random()  # each run of this test kills at other moments

    killed = tmp_path / "killed"
    kill_when(killed, at_step("sft", chance.randrange(1, 60), chance.random() / 50))
    kill_when(killed, at_save("grpo", chance.choice([3, 6])), "--resume")
    kill_when(killed, at_step("grpo", chance.randrange(7, 9), chance.random() / 10), "--resume")
    resumed = finish(killed, "--resume")

    check_there_is_something_to_compare(whole)
    assert numbers(resumed) == numbers(whole)
    assert games(resumed) == games(whole)
    assert stages(resumed) == stages(whole)
    models = [run.path / "models" / "grpo" / "model.safetensors" for run in (whole, resumed)]
    expected, found = map(load_file, models)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
