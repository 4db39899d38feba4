"""Runs a recipe: build or load a model, then play, warm up, play, reinforce, play, and report.

Every stage starts from the model folder that the stage before it wrote and ends by playing the same
evaluation games. What is finished is recorded in ``summary.json``, so a killed run continues with
the stage it was in, from that stage's newest checkpoint.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from corral.config import Resolved, dump, load
from corral.errors import UsageError
from corral.evaluation import Evaluation
from corral.recipes.demonstrations import solver_conversations
from corral.recipes.evaluating import evaluate_model
from corral.recipes.models import build_model
from corral.recipes.recipe import Recipe
from corral.recipes.reporting import write_report
from corral.rollout.seeds import derive
from corral.track import RunFolder, StageResult, Tracker, set_aside
from corral.training import GRPOTrainer, SFTTrainer
from corral.worlds import World, find_world


class Listener(Protocol):
    """Who is told how a run goes; the command line shows it."""

    def stage_started(self, stage: str, steps: int | None) -> None:
        """A stage begins; ``steps`` is None for one that has none."""
        ...

    def stage_finished(self, stage: str, result: Evaluation) -> None:
        """A stage is done and its games are played."""
        ...


@dataclass(slots=True)
class RecipeRun:
    """One run of a recipe in its folder."""

    resolved: Resolved[Recipe]
    world: World
    """What the recipe plays; found before anything is built."""
    folder: RunFolder
    tracker: Tracker
    listener: Listener
    results: list[StageResult] = field(default_factory=list[StageResult])
    started: float = field(default_factory=time.perf_counter)
    earlier_s: float = 0.0
    """Wall time of the runs this one continues."""

    @property
    def recipe(self) -> Recipe:
        """What is run."""
        return self.resolved.value

    def run(self) -> list[StageResult]:
        """Run what is not finished yet; returns the results of all stages."""
        stages: dict[str, Callable[[Path, Path], None]] = {"base": self._build}
        if self.recipe.sft is not None:
            stages["sft"] = self._warm_up
        if self.recipe.grpo is not None:
            stages["grpo"] = self._reinforce
        source = self.model_path("base")
        done = {result.name for result in self.results}
        for name, make in stages.items():
            target = self.model_path(name)
            if name not in done:
                self._run_stage(name, make, source, target)
            source = target
        write_report(self.folder, source)
        return self.results

    def model_path(self, stage: str) -> Path:
        """Where a stage leaves its model."""
        return self.folder.path / "models" / stage

    def _run_stage(
        self, name: str, make: Callable[[Path, Path], None], source: Path, target: Path
    ) -> None:
        started = time.perf_counter()
        make(source, target)
        evaluation, episodes = evaluate_model(target, self.world, self.recipe)
        self.folder.write_episodes(f"eval-{name}", 0, episodes)
        seconds = time.perf_counter() - started
        self.results.append(StageResult(name=name, metrics=evaluation.as_row(), seconds=seconds))
        self._write_summary()
        self.listener.stage_finished(name, evaluation)

    def _build(self, _: Path, target: Path) -> None:
        self.listener.stage_started("base", None)
        build_model(self.recipe, self.world, target)

    def _warm_up(self, source: Path, target: Path) -> None:
        section = self.recipe.sft
        assert section is not None
        rows = solver_conversations(self.world, section, seed=derive(self.recipe.seed, "games"))
        args = section.train.model_copy(update=self._stage_settings("sft"))
        trainer = SFTTrainer(str(source), args, rows, tracker=self.tracker)
        self.listener.stage_started("sft", trainer.state.max_steps)
        trainer.train(resume_from_checkpoint=True)
        trainer.save_model(target)
        trainer.end()

    def _reinforce(self, source: Path, target: Path) -> None:
        section = self.recipe.grpo
        assert section is not None
        rows = self.world.tasks(derive(self.recipe.seed, "tasks"), section.tasks)
        args = section.train.model_copy(update=self._stage_settings("grpo"))
        trainer = GRPOTrainer(
            str(source),
            args=args,
            train_dataset=rows,
            environment_factory=self.world.factory,
            tracker=self.tracker,
        )
        self.listener.stage_started("grpo", trainer.state.max_steps)
        trainer.train(resume_from_checkpoint=True)
        trainer.save_model(target)
        trainer.end()

    def _stage_settings(self, stage: str) -> dict[str, Any]:
        return {
            "seed": derive(self.recipe.seed, stage) % 2**31,
            "output_dir": str(self.folder.path),
        }

    def _write_summary(self) -> None:
        self.folder.write_summary(
            asked=self.recipe.model_dump(mode="json"),
            stages=self.results,
            wall_time_s=self.earlier_s + time.perf_counter() - self.started,
        )


def start(resolved: Resolved[Recipe], tracker: Tracker, listener: Listener) -> RecipeRun:
    """A fresh run; a folder that an earlier run left is kept under another name."""
    world = find_world(resolved.value.world)
    folder = RunFolder(run_path(resolved.value))
    set_aside(folder.path)
    folder.create()
    folder.write_config(dump(resolved))
    return RecipeRun(resolved, world, folder, tracker, listener)


def resume(resolved: Resolved[Recipe], tracker: Tracker, listener: Listener) -> RecipeRun:
    """Continue the run in the recipe's folder."""
    folder = RunFolder(saved_config(resolved.value).parent)
    summary: Mapping[str, Any] = folder.read_summary() or {}
    results = [StageResult.from_row(row) for row in summary.get("stages", ())]
    earlier = float(summary.get("wall_time_s") or 0.0)
    world = find_world(resolved.value.world)
    return RecipeRun(resolved, world, folder, tracker, listener, results, earlier_s=earlier)


def saved_config(recipe: Recipe) -> Path:
    """The settings that the recipe's run was started with.

    Raises:
        UsageError: There is no such run.
    """
    path = RunFolder(run_path(recipe)).config_path
    if not path.is_file():
        raise UsageError(f"There is no run to resume in {path.parent}: start it without --resume.")
    return path


def run_path(recipe: Recipe) -> Path:
    """The folder of a recipe's run."""
    return Path(recipe.output or f"runs/{recipe.name}")


def recipe_of(folder: Path) -> Recipe | None:
    """The recipe that the run in ``folder`` was started with; None if it is no run folder."""
    path = RunFolder(folder).config_path
    return load(path, [], Recipe).value if path.is_file() else None


def newest_model(folder: Path) -> Path | None:
    """The model of the latest finished stage of a run folder; None for any other folder."""
    candidates = [folder / "models" / stage for stage in ("grpo", "sft", "base")]
    return next((path for path in candidates if (path / "config.json").is_file()), None)
