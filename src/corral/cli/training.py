"""``corral train`` and ``corral sft``."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.installing import Install, make_ready
from corral.cli.output import emit, fail, prints_apart, say, screen, table
from corral.cli.quiet import quiet_libraries
from corral.cli.signals import Killed, told_of_signals

if TYPE_CHECKING:
    from rich.table import Table

    from corral.config import Resolved
    from corral.recipes.folders import MovedAside
    from corral.recipes.run import RecipeRun
    from corral.track import ProgressTracker, StageResult

COLUMNS = (
    "games",
    "wins",
    "guesses_per_win",
    "invalid_guesses",
    "valid_call_share",
    "mean_reward",
    "loss",
    "eval_loss",
    "mean_token_accuracy",
    "reward",
)
"""What the table at the end shows of each stage, where it is known."""

STAGES = {
    "base": "the model before training",
    "sft": "learning from finished conversations",
    "grpo": "learning from its own games",
}

Seed = Annotated[int | None, typer.Option(help="Seed of the whole run.")]
Output = Annotated[str | None, typer.Option(help="Run folder; default runs/<name>.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in the run folder.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the resolved settings, check them, and stop.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]


def train(
    recipe: Annotated[str, typer.Argument(help="A packaged recipe (see `corral list`) or a file.")],
    seed: Seed = None,
    output: Output = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change one setting; repeatable."),
    ] = None,
    resume: Resume = False,
    dry_run: DryRun = False,
    install: Install = False,
    json: Json = False,
) -> None:
    """Run a recipe: a model learns a world, and plays before and after.

    A recipe is TOML or YAML. The run folder keeps settings, metrics, episodes, checkpoints, models
    and a report.

    Example: corral train wordle-tiny --seed 1 --set grpo.train.max_steps=50
    """
    from corral.recipes.catalogue import recipe_source

    source = recipe_source(recipe)  # before the imports of what runs it, which take seconds
    again = ["corral", "train", recipe]
    _command(source, overrides or [], seed, output, resume, dry_run, json, again, install=install)


def sft(
    model: Annotated[str, typer.Argument(help="A model folder or a hub id.")],
    dataset: Annotated[
        str, typer.Argument(help="A .jsonl, .json, .parquet or .csv file, a folder, or a hub id.")
    ],
    split: Annotated[str | None, typer.Option(help="Split of the dataset; default train.")] = None,
    eval_dataset: Annotated[
        str | None, typer.Option(help="Rows to measure the loss on, after each epoch.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML or YAML file with fields of SFTConfig.")
    ] = None,
    seed: Seed = None,
    output: Output = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A field of SFTConfig; repeatable."),
    ] = None,
    resume: Resume = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Fine-tune a model on conversations or texts.

    Rows have `messages` (and `tools`), `prompt` and `completion`, or `text`. The run folder keeps
    settings (a recipe for `corral train`), metrics, checkpoints, the model and a report.

    Example: corral sft path-or-hub-id talks.jsonl --set assistant_only_loss=true
    """
    from corral.recipes.catalogue import sft_recipe

    source = sft_recipe(
        model, dataset, split=split, eval_dataset=eval_dataset, settings_file=config
    )
    changes = [f"sft.train.{text}" for text in overrides or []]
    again = ["corral", "sft", model, dataset]
    _command(source, changes, seed, output, resume, dry_run, json, again)


def _command(
    source: "str | dict[str, Any]",
    overrides: list[str],
    seed: int | None,
    output: str | None,
    resume: bool,
    dry_run: bool,
    json: bool,
    again: Sequence[str],
    *,
    install: bool = False,
) -> None:
    from corral.config import dump

    resolved = _resolved(source, seed, output, overrides, resume)
    if dry_run:
        # Printed before it is checked: who is told what does not fit can see where it comes from.
        typer.echo(dump(resolved), nl=False)
        _check(resolved)
        return
    folder = _folder(resolved)
    command = shlex.join([*again, "--output", str(folder), "--resume"])
    with prints_apart():
        for spec in resolved.value.environments().values():
            make_ready(spec, install=install)
        results = _run(resolved, command, is_resumed=resume)
    if json:
        emit({"run": str(folder), "stages": [result.as_row() for result in results]})


def _check(resolved: "Resolved[Any]") -> None:
    quiet_libraries()
    with prints_apart():
        from corral.recipes.run import check

        check(resolved.value)


def _resolved(
    source: "str | dict[str, Any]",
    seed: int | None,
    output: str | None,
    overrides: list[str],
    resume: bool,
) -> "Resolved[Any]":
    from corral.config import Flag, load, with_written_origins
    from corral.recipes.folders import saved_config
    from corral.recipes.recipe import Recipe

    given = [
        Flag(name="--seed", key="seed", value=seed),
        Flag(name="--output", key="output", value=output),
    ]
    flags = [flag for flag in given if flag.value is not None]
    fresh = load(source, overrides, Recipe, flags=flags)
    if not resume:
        return fresh
    # A resumed run keeps the settings it was started with, and takes those given now on top.
    saved = saved_config(fresh.value)
    return with_written_origins(load(saved, overrides, Recipe, flags=flags), saved)


def _run(resolved: "Resolved[Any]", goes_on: str, *, is_resumed: bool) -> "list[StageResult]":
    from corral.recipes.run import resume, start
    from corral.track import ProgressTracker

    quiet_libraries()
    with ProgressTracker(console=screen) as progress:
        make: Callable[..., Any] = resume if is_resumed else start
        run = make(resolved, progress, _Screen(progress))
        say(f"Run folder: {run.folder.path}")
        results = _until_told_to_stop(run, goes_on)
    screen.print(before_and_after(results))
    say(f"Report: {run.folder.report_path}")
    specs = run.recipe.environments().values()
    for spec in specs:
        command = shlex.join(["corral", "play", spec, "--model", str(run.folder.path)])
        say(f"Watch it play: {command}")
    if not specs:
        say(f"Model: {run.model_path(results[-1].name)}")
    return results


def _until_told_to_stop(run: "RecipeRun", goes_on: str) -> "list[StageResult]":
    """Run it; who is interrupted before there is something to go on with has nothing to be told."""
    try:
        with told_of_signals():
            return run.run()
    except KeyboardInterrupt:
        fail(f"Interrupted. Finished work is kept. Go on with:\n{goes_on}", code=130)
    except Killed as killed:
        text = f"Stopped by {killed}. Finished work is kept. Go on with:\n{goes_on}"
        fail(text, code=killed.code)


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

    def moved_aside(self, moved: "MovedAside") -> None:
        rest = f"; --output {moved.aside} --resume goes on with it" if moved.can_go_on else ""
        say(f"{moved.path} held {moved.what}, which is now {moved.aside}{rest}.")

    def stage_started(self, stage: str, steps: int | None) -> None:
        what = STAGES.get(stage, "a scripted player, to compare with")
        say(f"{stage}: {what}" + (f", {steps} steps" if steps else ""))
        if steps:
            self._progress.set_total(stage, steps)

    def stage_finished(self, result: "StageResult") -> None:
        numbers = result.metrics
        if "games" not in numbers:
            shown = [f"{name} {numbers[name]:.3g}" for name in COLUMNS if name in numbers]
            say(f"{result.name}: {', '.join(shown) or 'ready'}")
            return
        mean = numbers["mean_reward"]
        reward = "–" if mean is None else f"{mean:.2f}"
        won = f"won {numbers['wins']} of {numbers['games']} games"
        names = [key.removeprefix("wins/") for key in numbers if key.startswith("wins/")]
        each = [f"{name} {numbers[f'wins/{name}']} of {numbers[f'games/{name}']}" for name in names]
        apart = f" ({', '.join(each)})" if each else ""
        say(f"{result.name}: {won}{apart}, mean reward {reward}")


def _folder(resolved: "Resolved[Any]") -> Any:
    from corral.recipes.folders import run_path

    return run_path(resolved.value)
