"""The packaged recipes that make their own models, and how a test runs one shortened."""

import json
import tomllib
from typing import Any

from typer.testing import CliRunner

from corral.cli.main import app
from corral.recipes.catalogue import packaged_recipes
from corral.worlds import find_world

SHORT = {
    "sft.games": 8,
    "sft.train.num_train_epochs": 1,
    "grpo.train.max_steps": 2,
    "grpo.train.save_steps": 2,
    "grpo.train.per_device_train_batch_size": 8,
    "grpo.train.num_generations": 4,
    "grpo.train.max_completion_length": 48,
    "evaluation.games": 2,
}

RECIPES: dict[str, dict[str, Any]] = {
    name: recipe
    for name, text in packaged_recipes().items()
    if (recipe := tomllib.loads(text))["model"]["kind"] == "scratch"
}
HOSTED = [
    name for name, recipe in RECIPES.items() if find_world(recipe["environment"]).needs is not None
]
"""Those whose world has to be installed; tests/worlds runs them."""
HERE = [name for name in RECIPES if name not in HOSTED]


def check_that_it_runs(name: str) -> None:
    """Run a recipe shortened, from first to last stage, in the current folder."""
    options = [part for key, value in SHORT.items() for part in ("--set", f"{key}={value}")]
    ran = CliRunner().invoke(app, ["train", name, "--json", *options])
    assert ran.exit_code == 0, ran.output
    stages = json.loads(ran.stdout)["stages"]
    players = RECIPES[name].get("evaluation", {}).get("players", [])
    assert [stage["name"] for stage in stages] == [*players, "base", "sft", "grpo"]
    assert all(stage["games"] == 2 and stage["faults"] == 0 for stage in stages)
