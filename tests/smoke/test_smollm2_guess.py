"""The recipe smollm2-guess from end to end, with a tiny random model in the place of SmolLM2."""

import json
from pathlib import Path

import pytest

from corral.config import load
from corral.recipes.catalogue import recipe_source
from corral.recipes.folders import MovedAside
from corral.recipes.recipe import Recipe
from corral.recipes.run import start
from corral.track import MemoryTracker, StageResult

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch.*")

SMALL = [
    'model={kind="scratch", hidden_size=32, layers=2, heads=2, intermediate_size=32}',
    "sft.games=8",
    "sft.train.max_steps=2",
    "sft.train.trained_blocks=1",
    "grpo.train.max_steps=2",
    "grpo.train.per_device_train_batch_size=4",
    "grpo.train.num_generations=2",
    "grpo.train.max_completion_length=48",
    "grpo.train.trained_blocks=1",
    "evaluation.games=3",
]


class Heard:
    def __init__(self) -> None:
        self.finished: list[str] = []

    def moved_aside(self, moved: MovedAside) -> None: ...

    def stage_started(self, stage: str, steps: int | None) -> None: ...

    def stage_finished(self, result: StageResult) -> None:
        self.finished.append(result.name)


def test_it_runs_and_reports_calls_and_reward_of_every_step(tmp_path: Path) -> None:
    overrides = [*SMALL, f'output="{tmp_path / "run"}"']
    resolved = load(recipe_source("smollm2-guess"), overrides, Recipe)
    tracker, heard = MemoryTracker(), Heard()
    results = start(resolved, tracker, heard).run()

    assert [result.name for result in results] == heard.finished == ["base", "sft", "grpo"]
    assert len(tracker.values("tools/valid_call_share", stage="grpo")) == 2
    assert len(tracker.values("reward", stage="grpo")) == 2
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert [stage["games"] for stage in summary["stages"]] == [3, 3, 3]
    report = (tmp_path / "run" / "report.html").read_text()
    assert "tools/valid_call_share" in report
