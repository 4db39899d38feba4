"""``corral eval``."""

from pathlib import Path
from typing import Annotated

import typer

from corral.cli.output import emit, screen, table


def evaluate(
    model: Annotated[str, typer.Argument(help="A run folder, a model folder or a hub id.")],
    world: Annotated[str, typer.Option(help="Built-in name, module:Class or path.py:Class.")],
    games: Annotated[int, typer.Option(min=1, help="Evaluation games to play.")] = 30,
    temperature: Annotated[float, typer.Option(min=0.0, help="0 is greedy.")] = 0.0,
    max_tokens: Annotated[
        int, typer.Option(min=1, help="Tokens of a game after its prompt.")
    ] = 512,
    stop_when_done: Annotated[
        bool, typer.Option(help="End a game when the environment is done.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Play a world's evaluation games with a model and count wins and rewards.

    Example: corral eval runs/wordle-tiny --world wordle --games 30
    """
    from corral.recipes.evaluating import evaluate as play
    from corral.recipes.run import newest_model
    from corral.training import GRPOConfig
    from corral.worlds import find_world

    path = newest_model(Path(model)) or model
    rules = GRPOConfig(max_completion_length=max_tokens, stop_when_done=stop_when_done)
    result, _ = play(path, find_world(world), rules, games=games, temperature=temperature)
    row = {"model": str(path), "world": world, **result.as_row(), "seconds": result.seconds}
    if json:
        emit(row)
        return
    shown = {name: value for name, value in row.items() if value is not None}
    screen.print(table("Evaluation", ["", ""], list(shown.items())))
