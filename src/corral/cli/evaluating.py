"""``corral eval``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.data import Dataset, Split, check_given_rows, given_rows
from corral.cli.installing import Install, wanted_world
from corral.cli.output import emit, prints_apart, screen, table
from corral.cli.quiet import quiet_libraries
from corral.errors import UsageError

if TYPE_CHECKING:
    from corral.recipes.named import Rows


def evaluate(
    model: Annotated[str, typer.Argument(help="A run folder, a model folder or a hub id.")],
    world: Annotated[
        str | None,
        typer.Option(help="Built-in name, module:Class, path.py:Class or URL; default: the run's."),
    ] = None,
    dataset: Dataset = None,
    split: Split = None,
    games: Annotated[int, typer.Option(min=1, help="Evaluation games to play.")] = 30,
    temperature: Annotated[float, typer.Option(min=0.0, help="0 is greedy.")] = 0.0,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens of a game after its prompt.")
    ] = None,
    stop_when_done: Annotated[
        bool | None, typer.Option(help="End a game when the environment is done.")
    ] = None,
    install: Install = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Play evaluation games, or given rows, with a model, and count.

    Of a run folder its newest model plays, by the rules of its training.

    Example: corral eval runs/wordle-tiny --games 30
    """
    from corral.track import RunFolder

    # Wrong use is told at once: the imports below take seconds.
    if world is None and not RunFolder(Path(model)).config_path.is_file():
        what = "no run folder of a recipe" if Path(model).is_dir() else "not a folder that is here"
        raise UsageError(f"{model} is {what}, so say which world to play: --world NAME.")
    with prints_apart():
        rows = None if dataset is None else given_rows(dataset, split)
        if world is not None:
            wanted_world(world, install=install)
        row = _evaluated(
            *(model, world, games, temperature, max_tokens, stop_when_done, rows), install=install
        )
    if json:
        emit(row)
        return
    shown = {name: value for name, value in row.items() if value is not None}
    screen.print(
        table("Evaluation", ["", ""], [(key.replace("_", " "), shown[key]) for key in shown])
    )


def _evaluated(
    model: str,
    world: str | None,
    games: int,
    temperature: float,
    max_tokens: int | None,
    stop_when_done: bool | None,
    rows: "Rows | None",
    *,
    install: bool,
) -> dict[str, Any]:
    """Play the games: what is shown of them."""
    quiet_libraries()
    from corral.recipes.evaluating import evaluate as play
    from corral.recipes.evaluating import rules_of
    from corral.recipes.folders import newest_model, recipe_of

    recipe = recipe_of(Path(model))
    named: dict[str | None, str] = recipe.environments() if recipe is not None else {}
    specs = named if world is None else {None: world}
    if not specs:
        raise UsageError(f"{model} was trained without an environment: say which, with --world.")
    changes = {"max_completion_length": max_tokens, "stop_when_done": stop_when_done}
    rules = rules_of(recipe).model_copy(
        update={key: value for key, value in changes.items() if value is not None}
    )
    path = newest_model(Path(model)) or model
    own = recipe if world is None else None
    worlds = {name: wanted_world(spec, install=install) for name, spec in specs.items()}
    if rows is not None:
        check_given_rows(rows, worlds)
    result, _ = play(path, worlds, own, rules, games=games, temperature=temperature, rows=rows)
    name = ", ".join(name or spec for name, spec in specs.items())
    return {"model": str(path), "world": name, **result.as_row(), "seconds": result.seconds}
