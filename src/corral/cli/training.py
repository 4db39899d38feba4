"""``corral train``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.output import emit, say, screen, table
from corral.cli.quiet import quiet_libraries

if TYPE_CHECKING:
    from rich.table import Table

    from corral.config import Resolved
    from corral.track import ProgressTracker, StageResult

COLUMNS = (
    "games",
    "wins",
    "guesses_per_win",
    "invalid_guesses",
    "valid_call_share",
    "mean_reward",
)
"""What the table at the end shows of each stage, where it is known."""

STAGES = {
    "base": "the model before training",
    "sft": "learning from games of a scripted player",
    "grpo": "learning from its own games",
}


def train(
    recipe: Annotated[str, typer.Argument(help="A packaged recipe (see `corral list`) or a file.")],
    seed: Annotated[int | None, typer.Option(help="Seed of the whole run.")] = None,
    output: Annotated[str | None, typer.Option(help="Run folder; default runs/<name>.")] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change one setting; repeatable."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in the run folder.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the resolved settings and stop.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Run a recipe: a model learns a world, and plays before and after.

    The run folder keeps settings, metrics, episodes, checkpoints, models and a report.

    Example: corral train wordle-tiny --seed 1 --set grpo.train.max_steps=50
    """
    from corral.config import dump

    resolved = _resolved(recipe, seed, output, overrides or [], resume)
    if dry_run:
        typer.echo(dump(resolved), nl=False)
        return
    results = _run(resolved, is_resumed=resume)
    if json:
        emit({"run": str(_folder(resolved)), "stages": [result.as_row() for result in results]})


def _resolved(
    recipe: str,
    seed: int | None,
    output: str | None,
    overrides: list[str],
    resume: bool,
) -> "Resolved[Any]":
    from corral.recipes.catalogue import recipe_text

    text = recipe_text(recipe)  # before the imports below, which take seconds
    from corral.config import Flag, load
    from corral.recipes.recipe import Recipe
    from corral.recipes.run import saved_config

    given = [
        Flag(name="--seed", key="seed", value=seed),
        Flag(name="--output", key="output", value=output),
    ]
    flags = [flag for flag in given if flag.value is not None]
    fresh = load(text, overrides, Recipe, flags=flags)
    if not resume:
        return fresh
    # A resumed run keeps the settings it was started with, and takes those given now on top.
    return load(saved_config(fresh.value), overrides, Recipe, flags=flags)


def _run(resolved: "Resolved[Any]", *, is_resumed: bool) -> "list[StageResult]":
    from corral.recipes.run import resume, start
    from corral.track import ProgressTracker

    quiet_libraries()
    with ProgressTracker(console=screen) as progress:
        make = resume if is_resumed else start
        run = make(resolved, progress, _Screen(progress))
        say(f"Run folder: {run.folder.path}")
        results = run.run()
    screen.print(before_and_after(results))
    say(f"Report: {run.folder.report_path}")
    say(f"Watch it play: corral play {run.recipe.world} --model {run.folder.path}")
    return results


def before_and_after(results: "Sequence[StageResult]") -> "Table":
    """The table at the end of a run, narrow enough for a terminal of 80 columns."""
    names = [name for name in COLUMNS if any(r.metrics.get(name) is not None for r in results)]
    if any(result.metrics.get("faults") for result in results):
        names.append("faults")
    titles = [name.replace("_", " ") for name in names]
    rows = [
        [result.name, *(result.metrics.get(name) for name in names), _time(result.seconds)]
        for result in results
    ]
    return table("Before and after", ["stage", *titles, "time"], rows)


def _time(seconds: float | None) -> str | None:
    from corral.track.progress import clock_text

    return None if seconds is None else clock_text(seconds)


class _Screen:
    """Shows how a run goes."""

    def __init__(self, progress: "ProgressTracker") -> None:
        self._progress = progress

    def stage_started(self, stage: str, steps: int | None) -> None:
        what = STAGES.get(stage, "")
        say(f"{stage}: {what}" + (f", {steps} steps" if steps else ""))
        if steps:
            self._progress.set_total(stage, steps)

    def stage_finished(self, stage: str, result: Any) -> None:
        reward = "–" if result.mean_reward is None else f"{result.mean_reward:.2f}"
        say(f"{stage}: won {result.wins} of {result.games} games, mean reward {reward}")


def _folder(resolved: "Resolved[Any]") -> Any:
    from corral.recipes.run import run_path

    return run_path(resolved.value)
