"""``corral play``: a person, a scripted player or a model in a world."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.installing import Install, wanted_world
from corral.cli.output import emit, say, screen, table
from corral.cli.quiet import quiet_libraries
from corral.errors import EnvironmentFault, UsageError

if TYPE_CHECKING:
    from corral.worlds import World
    from corral.worlds.play import PlayedGame

Result = dict[str, Any]
"""A game as JSON."""


def play(
    env: Annotated[str, typer.Argument(help="Built-in name, module:Class, path.py:Class or URL.")],
    policy: Annotated[
        str | None, typer.Option(help="A scripted player of the world, such as random or solver.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="A run folder, a model folder or a hub id plays.")
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Games to play.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the first game; the next has seed + 1.")] = 0,
    temperature: Annotated[float, typer.Option(min=0.0, help="Of a model; 0 is greedy.")] = 0.0,
    install: Install = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per game.")] = False,
) -> None:
    """Play a world yourself, or watch a scripted player or a model.

    Example: corral play wordle --policy solver --episodes 3 --json
    """
    if policy is not None and model is not None:
        raise UsageError("--policy and --model are two players: give one of them, or none to play.")
    world = wanted_world(env, install=install)
    if model is not None:
        games = _model_games(world, model, episodes, seed, temperature, is_shown=not json)
    elif policy is not None:
        games = _scripted_games(world, policy, episodes, seed, is_shown=not json)
    else:
        games = _human_games(world, episodes, seed)
    results: list[Result] = []
    errors: list[str] = []
    for result, error in games:
        results.append(result)
        errors += [error] if error else []
        if json:
            emit(result)
    if not json:
        columns = list(results[0])
        rows = [[result[name] for name in columns] for result in results]
        screen.print(table("Games", columns, rows))
    if errors:
        raise EnvironmentFault(f"{len(errors)} of {episodes} games ended in a fault: {errors[0]}")


def _human_games(world: "World", episodes: int, seed: int) -> Iterator[tuple[Result, str | None]]:
    from corral.worlds.play import summary

    for game_seed in range(seed, seed + episodes):
        game = _human_game(world, game_seed)
        yield summary(world, game), game.error


def _scripted_games(
    world: "World", policy: str, episodes: int, seed: int, *, is_shown: bool
) -> Iterator[tuple[Result, str | None]]:
    from corral.cli.human import show_opening, show_turn
    from corral.worlds.play import play_episodes, summary

    for game in play_episodes(world, world.policy(policy), episodes=episodes, seed=seed):
        if is_shown:
            show_opening(game.row, game.observation)
            for turn in game.turns:
                show_turn(turn)
        yield summary(world, game), game.error


def _human_game(world: "World", seed: int) -> "PlayedGame":
    from corral.cli.human import human_policy, show_text
    from corral.records import Outcome
    from corral.worlds.play import play_scripted

    (row,) = world.tasks(seed, 1)
    game = play_scripted(world, human_policy(world, row), row, seed)
    if game.turns and game.outcome is not Outcome.FINISHED:
        # The answer that ended the game: a player who leaves has seen the last one.
        show_text(game.turns[-1].content)
    return game


def _model_games(
    world: "World", model: str, episodes: int, seed: int, temperature: float, *, is_shown: bool
) -> Iterator[tuple[Result, str | None]]:
    quiet_libraries()
    from corral.recipes.evaluating import play_model_games, rules_of
    from corral.recipes.run import newest_model, recipe_of

    path = newest_model(Path(model)) or model
    rules = rules_of(recipe_of(Path(model)))
    for played, row in play_model_games(path, world, rules, episodes, seed, temperature):
        if is_shown:
            for message in played.messages:
                say(f"{message['role']}: {_text(message)}")
        yield row, played.error


def _text(message: Any) -> str:
    calls = [
        f"{call['function']['name']}({call['function']['arguments']})"
        for call in message.get("tool_calls", ())
    ]
    thought = message.get("reasoning_content")
    parts = [f"({thought})" if thought else "", str(message.get("content") or ""), *calls]
    return " ".join(part for part in parts if part)
