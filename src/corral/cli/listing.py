"""``corral list``."""

from typing import Annotated

import typer

from corral.cli.output import emit, screen, table


def list_everything(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the worlds and the recipes that ship with Corral.

    Example: corral list
    """
    from corral.recipes.catalogue import recipe_summaries
    from corral.worlds import WORLDS

    worlds = {name: world.summary for name, world in WORLDS.items()}
    players = {name: sorted(world.policies) for name, world in WORLDS.items()}
    recipes = recipe_summaries()
    if json:
        emit({"worlds": worlds, "policies": players, "recipes": recipes})
        return
    rows = [(name, text, ", ".join(players[name])) for name, text in worlds.items()]
    screen.print(table("Worlds", ["name", "what it is", "players"], rows))
    screen.print(table("Recipes", ["name", "what it does"], list(recipes.items())))
