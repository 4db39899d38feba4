"""Whole runs without a script: recipes with files of one's own, and fine-tuning by a command."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from corral import UsageError
from corral.config import load
from corral.recipes.recipe import Recipe
from corral.serve.ports import free_port
from corral.track import RunFolder
from support.served_command import serving
from support.sums import RECIPE

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:torch.*"),
    pytest.mark.timeout(240),
]

Corral = Callable[..., Result]
"""The command line: its arguments, and the exit ``code`` it should have."""


def summary(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "summary.json").read_text())


def test_a_recipe_plays_a_file_s_environment_on_a_file_s_rows_for_a_file_s_rewards(
    corral: Corral, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = corral("train", "sums.yaml", "--json")
    run = tmp_path / "runs" / "sums"
    (base, grpo) = json.loads(ran.stdout)["stages"]
    assert (base["name"], grpo["name"]) == ("base", "grpo")
    # reached is 0 and short at least -8; an untrained model never reaches a goal.
    assert -4 <= grpo["mean_reward"] < 0
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert {"rewards/reached/mean", "rewards/short/mean"} <= set(lines[0]["metrics"])
    settings = tomllib.loads((run / "config.toml").read_text())
    assert settings["environment"] == f"{tmp_path}/game.py:Sum"
    assert settings["grpo"]["dataset"]["path"] == f"{tmp_path}/goals.jsonl"
    assert settings["grpo"]["rewards"][0] == f"{tmp_path}/rewards.py:reached"

    # The run folder stands for itself, wherever one is.
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    played = corral("eval", str(run), "--games", "2", "--json")
    assert json.loads(played.stdout)["games"] == 2
    command = re.search(r"Watch it play: corral (.*)", ran.stderr)
    assert command is not None
    watched = corral(*shlex.split(command[1].replace("runs/sums", str(run))), "--seed", "1")
    assert "Reach the goal. Start at 1." in watched.stderr
    assert re.search(r"-[0-8]\.\d\d ", watched.stderr), "scored by the run's own functions"
    before = summary(run)["wall_time_s"]
    more = "grpo.train.max_steps=2"
    stages = json.loads((run / "summary.json").read_text())
    stages["stages"] = stages["stages"][:1]  # as if the run had been killed in its last stage
    (run / "summary.json").write_text(json.dumps(stages))
    config = str(run / "config.toml")
    corral("train", config, "--output", str(run), "--resume", "--set", more)
    assert summary(run)["wall_time_s"] > before
    text = (run / "config.toml").read_text()
    assert tomllib.loads(text)["grpo"]["train"]["max_steps"] == 2
    origins = {
        line.partition(" = ")[0]: line.rpartition("# ")[2]
        for line in text.splitlines()
        if " = " in line
    }
    assert (origins["max_steps"], origins["num_generations"]) == ("--set", "recipe")
    assert origins["temperature"] == "default"
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 2


def test_several_environments_by_name_play_their_own_rows(
    corral: Corral, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"prompt": "Reach the goal.", "environment": "sums", "start": 1, "goal": 4},
        {"prompt": "Say it again.", "environment": "parrot", "start": None, "goal": None},
    ]
    (tmp_path / "both.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recipe = {**RECIPE, "name": "both", "environment": {"sums": "game.py:Sum", "parrot": "echo"}}
    recipe["grpo"] = {**RECIPE["grpo"], "dataset": "both.jsonl", "rewards": ["rewards.py:short"]}
    recipe["grpo"]["train"] = {**RECIPE["grpo"]["train"], "per_device_train_batch_size": 4}
    recipe["grpo"]["train"].pop("reward_weights")
    recipe["evaluation"] = {"games": 2}
    (tmp_path / "both.yaml").write_text(yaml.safe_dump(recipe))
    ran = corral("train", "both.yaml", "--json")
    assert [stage["games"] for stage in json.loads(ran.stdout)["stages"]] == [2, 2]
    run = tmp_path / "runs" / "both"
    settings = tomllib.loads((run / "config.toml").read_text())
    assert settings["environment"] == {"sums": f"{tmp_path}/game.py:Sum", "parrot": "echo"}
    (played,) = RunFolder(run).episode_files("grpo")
    shown = {
        saved.episode.task.environment: saved.episode.messages[0]["content"]
        for saved in played.read()
    }
    assert shown["sums"].startswith("Reach the goal. Start at 1.")
    assert shown["parrot"].startswith("Say it again.")

    monkeypatch.chdir(tmp_path / "runs")
    watched = corral("play", f"{tmp_path}/game.py:Sum", "--model", str(run))
    assert "Reach the goal. Start at 1." in watched.stderr
    assert "is not among" not in watched.stderr
    evaluated = json.loads(corral("eval", str(run), "--games", "2", "--json").stdout)
    assert (evaluated["games"], evaluated["world"]) == (2, "parrot, sums")
    assert (evaluated["games/parrot"], evaluated["games/sums"]) == (1, 1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sft": {"games": 3}}, "with several environments (a, b), set sft.dataset"),
        ({"grpo": {"tasks": 3}}, "set grpo.dataset, with a column `environment`"),
        ({"sft": {"dataset": "talks.jsonl"}}, "set evaluation.dataset, with a column"),
        (
            {"grpo": {"dataset": "x"}, "model": {"kind": "scratch"}},
            "start from a model that is there",
        ),
        ({"environment": {}}, "at least 1 item"),
    ],
)
def test_what_one_environment_brings_several_are_given(changes: dict[str, Any], words: str) -> None:
    recipe = {"name": "x", "model": "tiny", "environment": {"a": "echo", "b": "echo"}}
    with pytest.raises(UsageError, match=re.escape(words)):
        load(recipe | changes, [], Recipe)


def test_sft_by_a_command(corral: Corral, tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("max_steps: 2\nlearning_rate: 1e-2\neval_steps: 1\n")
    arguments = ["sft", "tiny", "talks.jsonl", "--eval-dataset", "talks.jsonl"]
    arguments += ["--config", "settings.yaml", "--set", "assistant_only_loss=true", "--seed", "5"]
    resolved = tomllib.loads(corral(*arguments, "--dry-run").stdout)
    assert resolved["sft"]["train"]["learning_rate"] == 0.01
    ran = corral(*arguments, "--set", "eval_strategy=steps", "--json")
    result = json.loads(ran.stdout)
    assert result["run"] == "runs/tiny-sft"
    run = tmp_path / result["run"]
    (_, sft) = result["stages"]
    assert sft["eval_loss"] < 6
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    losses = [line["metrics"]["eval_loss"] for line in lines if "eval_loss" in line["metrics"]]
    assert len(losses) == 2
    assert losses[1] < losses[0]
    assert (run / "report.html").is_file()
    assert (run / "models" / "sft" / "config.json").is_file()
    # Finished stages are kept; the recipe in the folder says all there is to know.
    again = corral("train", str(run / "config.toml"), "--output", str(run), "--resume", "--json")
    assert json.loads(again.stdout)["stages"] == result["stages"]


def test_scripted_players_play_the_evaluation_games_first(corral: Corral, tmp_path: Path) -> None:
    recipe = {
        "name": "played",
        "environment": "echo",
        "model": "tiny",
        "evaluation": {"games": 5, "players": ["solver", "random"]},
    }
    (tmp_path / "played.yaml").write_text(yaml.safe_dump(recipe))
    stages = json.loads(corral("train", "played.yaml", "--json").stdout)["stages"]
    assert [stage["name"] for stage in stages] == ["solver", "random", "base"]
    solver, random, _ = stages
    assert (solver["wins"], solver["mean_reward"], solver["valid_call_share"]) == (5, 1.0, 1.0)
    assert (random["games"], random["faults"]) == (5, 0)
    assert 0 < random["mean_reward"] < 1
    assert summary(tmp_path / "runs" / "played")["stages"] == stages
    # A run that is resumed keeps their rows.
    again = ["--output", "runs/played", "--resume", "--json"]
    assert json.loads(corral("train", "played.yaml", *again).stdout)["stages"] == stages


def test_an_environment_may_be_a_url(corral: Corral, tmp_path: Path) -> None:
    port = free_port()
    with serving(["corral", "serve", "echo", "--port", str(port)], port) as url:
        changes = [f"environment={url}", "grpo.rewards=[]", "grpo.train.reward_weights=none"]
        options = [part for change in changes for part in ("--set", change)]
        ran = corral("train", "sums.yaml", *options, "--json")
    (_, grpo) = json.loads(ran.stdout)["stages"]
    assert grpo["games"] == 1
    assert grpo["faults"] == 0


@pytest.mark.skipif(not hasattr(signal, "SIGTERM"), reason="no such signal here")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_run_that_is_told_to_stop_says_how_to_go_on(
    corral: Corral, tmp_path: Path, name: str
) -> None:
    command = [sys.executable, "-m", "corral.cli.main", "sft", "tiny", "talks.jsonl"]
    options = ["--set", "max_steps=100000", "--output", "runs/my run"]
    process = subprocess.Popen(
        [*command, *options],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "100"},
    )
    metrics = tmp_path / "runs" / "my run" / "metrics.jsonl"
    while not metrics.is_file():
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.1)
    process.send_signal(getattr(signal, name))
    _, told = process.communicate(timeout=60)
    assert process.returncode == (143 if name == "SIGTERM" else 130)
    assert f"{'Stopped by SIGTERM' if name == 'SIGTERM' else 'Interrupted'}. Finished work" in told
    assert "corral sft tiny talks.jsonl --output 'runs/my run' --resume" in told
    assert "Traceback" not in told
    assert summary(metrics.parent)["wall_time_s"] > 0
    goes_on = ["--output", "runs/my run", "--resume", "--set", "max_steps=1", "--json"]
    assert json.loads(corral("sft", "tiny", "talks.jsonl", *goes_on).stdout)["stages"][1]


def test_yaml_that_is_no_recipe_is_told(corral: Corral, tmp_path: Path) -> None:
    for text, words in (
        ("name: [", "bad.yaml is not valid YAML"),
        ("- name", "bad.yaml holds a list: give settings by name"),
        (
            "name: x\nmodel: tiny\nenvironmet: echo",
            "there is no setting 'environmet'. Did you mean",
        ),
    ):
        (tmp_path / "bad.yaml").write_text(text)
        assert words in corral("train", "bad.yaml", code=2).stderr.replace("\n", " ")


def test_data_alone_is_a_recipe_too(corral: Corral) -> None:
    recipe = Recipe.model_validate(
        {"name": "x", "model": "tiny", "sft": {"dataset": "talks.jsonl"}}
    )
    assert recipe.sft is not None
    assert recipe.sft.train.assistant_only_loss is False
    games = {"name": "x", "model": "tiny", "environment": "echo", "sft": {"games": 3}}
    imitated = Recipe.model_validate(games)
    assert imitated.sft is not None
    assert imitated.sft.train.assistant_only_loss is True
