"""``corral train``."""

from typing import Annotated, Any

import typer

from corral.cli.output import emit, say, screen, table
from corral.config import Flag, Resolved, load


def train(
    recipe: Annotated[str, typer.Argument(help="A packaged recipe (see `corral list`) or a file.")],
    seed: Annotated[int | None, typer.Option(help="Seed of the whole run.")] = None,
    output: Annotated[str | None, typer.Option(help="Run folder; default runs/<name>.")] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change one setting; repeatable."),
    ] = None,
    resume: Annotated[bool, typer.Option(help="Continue the run in the run folder.")] = False,
    dry_run: Annotated[bool, typer.Option(help="Print the resolved settings and stop.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Run a recipe: build or load a model, warm it up, reinforce it, play before and after.

    Example: corral train wordle-tiny --seed 1 --set grpo.train.max_steps=50
    """
    from corral.config import dump
    from corral.recipes.recipe import Recipe

    resolved = _resolved(Recipe, recipe, seed, output, overrides or [], resume)
    if dry_run:
        typer.echo(dump(resolved), nl=False)
        return
    results = _run(resolved, is_resumed=resume)
    if json:
        emit({"run": str(_folder(resolved)), "stages": [_row(result) for result in results]})


def _resolved(
    model: type[Any],
    recipe: str,
    seed: int | None,
    output: str | None,
    overrides: list[str],
    resume: bool,
) -> Resolved[Any]:
    from corral.recipes.catalogue import recipe_text
    from corral.recipes.run import saved_config

    given = [
        Flag(name="--seed", key="seed", value=seed),
        Flag(name="--output", key="output", value=output),
    ]
    flags = [flag for flag in given if flag.value is not None]
    fresh = load(recipe_text(recipe), overrides, model, flags=flags)
    if not resume:
        return fresh
    # A resumed run keeps the settings it was started with, and takes those given now on top.
    return load(saved_config(fresh.value), overrides, model, flags=flags)


def _run(resolved: Resolved[Any], *, is_resumed: bool) -> list[Any]:
    from corral.recipes.run import resume, start
    from corral.track import ProgressTracker

    progress = ProgressTracker(console=screen)
    listener = _Screen(progress)
    with progress:
        make = resume if is_resumed else start
        run = make(resolved, progress, listener)
        say(f"Run folder: {run.folder.path}")
        results = run.run()
    columns = [
        name for name in results[0].metrics if any(r.metrics[name] is not None for r in results)
    ]
    rows = [[result.name, *[result.metrics[name] for name in columns]] for result in results]
    screen.print(table("Before and after", ["stage", *columns], rows))
    say(f"Report: {run.folder.report_path}")
    return results


class _Screen:
    """Shows how a run goes."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress

    def stage_started(self, stage: str, steps: int | None) -> None:
        say(f"Stage {stage}" + (f": {steps} steps" if steps else ""))
        if steps:
            self._progress.set_total(stage, steps)

    def stage_finished(self, stage: str, result: Any) -> None:
        reward = "–" if result.mean_reward is None else f"{result.mean_reward:.2f}"
        say(f"Stage {stage} done: {result.wins} of {result.games} games won, mean reward {reward}")


def _folder(resolved: Resolved[Any]) -> Any:
    from corral.recipes.run import run_path

    return run_path(resolved.value)


def _row(result: Any) -> dict[str, Any]:
    return {"name": result.name, **result.metrics, "seconds": result.seconds}
