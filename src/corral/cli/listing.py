"""``corral list``."""

from typing import Annotated

import typer

from corral.cli.output import emit, prints_apart, say, screen, table


def list_everything(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the worlds that can be played by name, and the recipes.

    Example: corral list
    """
    from corral.recipes.catalogue import recipe_summaries
    from corral.worlds import FAMILIES, WORLDS, added_worlds

    with prints_apart():  # packages are imported
        added, failures = added_worlds()
    found = WORLDS | added
    worlds = {name: world.summary for name, world in found.items()}
    players = {name: sorted(world.policies) for name, world in found.items()}
    recipes = recipe_summaries()
    if json:
        emit(
            {
                "worlds": worlds,
                "policies": players,
                "families": {name: family.summary for name, family in FAMILIES.items()},
                "failures": failures,
                "recipes": recipes,
            }
        )
        return
    rows = [(name, text, ", ".join(players[name])) for name, text in worlds.items()]
    rows += [(f"{name}:NAME", family.summary, "") for name, family in FAMILIES.items()]
    screen.print(table("Worlds", ["name", "what it is", "players"], rows))
    for reason in failures.values():
        say(reason, style="yellow")
    screen.print(table("Recipes", ["name", "what it does"], list(recipes.items())))
