"""Every packaged recipe that makes its own model runs, shortened, from first to last stage."""

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corral.cli.main import app
from corral.recipes.catalogue import packaged_recipes

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:torch.*"),
    pytest.mark.timeout(480),
]

SHORT = {
    "sft.games": 8,
    "grpo.train.max_steps": 2,
    "grpo.train.save_steps": 2,
    "grpo.train.per_device_train_batch_size": 8,
    "grpo.train.num_generations": 4,
    "grpo.train.max_completion_length": 48,
    "evaluation.games": 2,
}


def players(name: str) -> list[str]:
    """The scripted players that play the recipe's evaluation games first."""
    evaluation = tomllib.loads(packaged_recipes()[name]).get("evaluation", {})
    return evaluation.get("players", [])


MAKES_ITS_MODEL = [
    name
    for name, text in packaged_recipes().items()
    if tomllib.loads(text)["model"]["kind"] == "scratch"
]


@pytest.mark.parametrize("name", MAKES_ITS_MODEL)
def test_a_recipe_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    options = [part for key, value in SHORT.items() for part in ("--set", f"{key}={value}")]
    ran = CliRunner().invoke(app, ["train", name, "--json", *options])
    assert ran.exit_code == 0, ran.output
    stages = json.loads(ran.stdout)["stages"]
    assert [stage["name"] for stage in stages] == [*players(name), "base", "sft", "grpo"]
    assert all(stage["games"] == 2 and stage["faults"] == 0 for stage in stages)
