"""Runs a recipe: build or load a model, then play, warm up, play, reinforce, play, and report.

Every stage starts from the model folder that the stage before it wrote and, where there is an
environment, ends by playing the same evaluation games. What is finished is recorded in
``summary.json``, so a killed run continues with the stage it was in, from that stage's newest
checkpoint.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from corral.config import Resolved, dump
from corral.hosting import find_environment
from corral.recipes.checks import check_recipe
from corral.recipes.demonstrations import solver_conversations
from corral.recipes.evaluating import evaluate_model, evaluate_scripted
from corral.recipes.folders import (
    MovedAside,
    check_run_folder,
    fresh_folder,
    left_folder,
    run_path,
    saved_config,
)
from corral.recipes.models import build_model
from corral.recipes.named import Worlds, factory_of, find_rewards, rows_at, with_absolute_paths
from corral.recipes.recipe import Recipe, ReinforcementSection, WarmupSection
from corral.recipes.reporting import write_report
from corral.rollout.seeds import derive
from corral.track import RunFolder, StageResult, Tracker
from corral.training import GRPOTrainer, SFTTrainer

Numbers = Mapping[str, Any]
"""What a stage came to."""


class Listener(Protocol):
    """Who is told how a run goes; the command line shows it."""

    def moved_aside(self, moved: MovedAside) -> None:
        """What was in the way of the run's folder has another name now."""
        ...

    def stage_started(self, stage: str, steps: int | None) -> None:
        """A stage begins; ``steps`` is None for one that has none."""
        ...

    def stage_finished(self, result: StageResult) -> None:
        """A stage is done and its games are played."""
        ...


SUMMARY_PAUSE_S = 10.0
"""Seconds between two notes of the wall time: what a kill can lose of it."""

_TRAINING_NUMBERS = ("loss", "eval_loss", "mean_token_accuracy", "reward")
"""What a stage reports of its training where no games are played."""


@dataclass(slots=True)
class RecipeRun:
    """One run of a recipe in its folder."""

    resolved: Resolved[Recipe]
    worlds: Worlds
    """What the recipe plays; found before anything is built."""
    folder: RunFolder
    tracker: Tracker
    listener: Listener
    results: list[StageResult] = field(default_factory=list[StageResult])
    started: float = field(default_factory=time.perf_counter)
    earlier_s: float = 0.0
    """Wall time of the runs this one continues."""
    noted: float = field(default_factory=time.perf_counter)
    """When the summary was last written."""
    writing: ExitStack = field(default_factory=ExitStack)
    """Holds the folder until the run ends."""

    @property
    def recipe(self) -> Recipe:
        """What is run."""
        return self.resolved.value

    def run(self) -> list[StageResult]:
        """Run what is not finished yet; returns the results of all stages."""
        with self.writing:
            return self._run()

    def _run(self) -> list[StageResult]:
        stages: dict[str, Callable[[Path, Path], Numbers]] = {"base": self._build}
        if self.recipe.sft is not None:
            stages["sft"] = self._warm_up
        if self.recipe.grpo is not None:
            stages["grpo"] = self._reinforce
        source = self.model_path("base")
        done = {result.name for result in self.results}
        try:
            for name in self.recipe.evaluation.players:
                if name not in done:
                    self._compare_with(name)
            for name, make in stages.items():
                target = self.model_path(name)
                if name not in done:
                    self._run_stage(name, make, source, target)
                source = target
        finally:
            self._write_summary()
        write_report(self.folder, source)
        return self.results

    def model_path(self, stage: str) -> Path:
        """Where a stage leaves its model."""
        return self.folder.path / "models" / stage

    def log(self, step: int, metrics: Mapping[str, Any], stage: str) -> None:
        """Show a step, and note now and then how long the run has taken."""
        self.tracker.log(step, metrics, stage)
        if time.perf_counter() - self.noted > SUMMARY_PAUSE_S:
            self._write_summary()

    def close(self) -> None:
        """A stage has ended: its last state stays on the screen."""
        close = getattr(self.tracker, "close", None)
        if close is not None:
            close()

    def _run_stage(
        self, name: str, make: Callable[[Path, Path], Numbers], source: Path, target: Path
    ) -> None:
        started = time.perf_counter()
        numbers = make(source, target)
        if self.worlds:
            evaluation, episodes = evaluate_model(target, self.worlds, self.recipe)
            self.folder.write_episodes(f"eval-{name}", 0, episodes)
            numbers = evaluation.as_row()
        self._finish(name, numbers, time.perf_counter() - started)

    def _compare_with(self, player: str) -> None:
        self.listener.stage_started(player, None)
        evaluation = evaluate_scripted(player, self.worlds[None], self.recipe)
        self._finish(player, evaluation.as_row(), evaluation.seconds)

    def _finish(self, name: str, numbers: Numbers, seconds: float) -> None:
        result = StageResult(name=name, metrics=numbers, seconds=seconds)
        self.results.append(result)
        self._write_summary()
        self.listener.stage_finished(result)

    def _build(self, _: Path, target: Path) -> Numbers:
        self.listener.stage_started("base", None)
        build_model(self.recipe, self.worlds.get(None), target)
        return {}

    def _warm_up(self, source: Path, target: Path) -> Numbers:
        section = self.recipe.sft
        assert section is not None
        held_out = section.eval_dataset
        trainer = SFTTrainer(
            str(source),
            section.train.model_copy(update=self._stage_settings("sft")),
            self._warm_up_rows(section),
            rows_at(held_out, "sft.eval_dataset") if held_out is not None else None,
            tracker=self,
        )
        return self._train("sft", trainer, target)

    def _warm_up_rows(self, section: WarmupSection) -> Any:
        if section.dataset is not None:
            return rows_at(section.dataset, "sft.dataset")
        world = self.worlds[None]  # the recipe checks that there is one
        return solver_conversations(world, section, seed=derive(self.recipe.seed, "games"))

    def _reinforce(self, source: Path, target: Path) -> Numbers:
        section = self.recipe.grpo
        assert section is not None
        trainer = GRPOTrainer(
            str(source),
            find_rewards(section.rewards) or None,
            args=section.train.model_copy(update=self._stage_settings("grpo")),
            train_dataset=self._tasks(section),
            environment_factory=factory_of(self.worlds),
            tracker=self,
        )
        return self._train("grpo", trainer, target)

    def _tasks(self, section: ReinforcementSection) -> Any:
        if section.dataset is not None:
            return rows_at(section.dataset, "grpo.dataset")
        world = self.worlds[None]  # the recipe checks that there is one
        return world.tasks(derive(self.recipe.seed, "tasks"), section.tasks)

    def _train(self, stage: str, trainer: SFTTrainer | GRPOTrainer, target: Path) -> Numbers:
        self.listener.stage_started(stage, trainer.state.max_steps)
        trainer.train(resume_from_checkpoint=True)
        trainer.save_model(target)
        trainer.end()
        latest: dict[str, Any] = {}
        for line in self.folder.read_metrics(stage):
            latest |= line.metrics
        return {name: latest[name] for name in _TRAINING_NUMBERS if name in latest}

    def _stage_settings(self, stage: str) -> dict[str, Any]:
        return {
            "seed": derive(self.recipe.seed, stage) % 2**31,
            "output_dir": str(self.folder.path),
        }

    def _write_summary(self) -> None:
        self.noted = time.perf_counter()
        self.folder.write_summary(
            asked=self.recipe.model_dump(mode="json"),
            stages=self.results,
            wall_time_s=self.earlier_s + time.perf_counter() - self.started,
        )


def check(recipe: Recipe) -> None:
    """Check all that a run of the recipe would be refused for; nothing is built or written.

    Raises:
        UsageError: Something is not there, or does not fit together.
        MissingExtraError: A package that is needed is not installed.
    """
    check_run_folder(run_path(recipe))
    recipe = with_absolute_paths(recipe)
    check_recipe(recipe, _worlds(recipe))


def start(resolved: Resolved[Recipe], tracker: Tracker, listener: Listener) -> RecipeRun:
    """A fresh run; a folder that an earlier run left is kept under another name."""
    resolved = replace(resolved, value=with_absolute_paths(resolved.value))
    worlds = _worlds(resolved.value)
    check_recipe(resolved.value, worlds)
    folder, writing = fresh_folder(run_path(resolved.value), listener.moved_aside)
    folder.write_config(dump(resolved))
    return RecipeRun(resolved, worlds, folder, tracker, listener, writing=writing)


def resume(resolved: Resolved[Recipe], tracker: Tracker, listener: Listener) -> RecipeRun:
    """Continue the run in the recipe's folder, with settings that may have been changed since."""
    folder, writing = left_folder(saved_config(resolved.value).parent)
    summary: Mapping[str, Any] = folder.read_summary() or {}
    results = [StageResult.from_row(row) for row in summary.get("stages", ())]
    earlier = float(summary.get("wall_time_s") or 0.0)
    resolved = replace(resolved, value=with_absolute_paths(resolved.value))
    worlds = _worlds(resolved.value)
    check_recipe(resolved.value, worlds)
    folder.write_config(dump(resolved))
    return RecipeRun(
        resolved, worlds, folder, tracker, listener, results, earlier_s=earlier, writing=writing
    )


def _worlds(recipe: Recipe) -> Worlds:
    """The environments, and whatever else is named, looked up before anything is built."""
    if recipe.grpo is not None:
        find_rewards(recipe.grpo.rewards)
    worlds = {name: find_environment(spec) for name, spec in recipe.environments().items()}
    for player in recipe.evaluation.players:
        worlds[None].policy(player)
    return worlds
