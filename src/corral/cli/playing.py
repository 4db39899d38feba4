"""``corral play``: a person, a scripted player or a model in a world."""

import shlex
import tomllib
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.data import Dataset, Split, check_given_rows, given_rows
from corral.cli.installing import Install, wanted_world
from corral.cli.output import emit, prints_apart, say, screen, table
from corral.cli.quiet import quiet_libraries
from corral.errors import EnvironmentFault, UsageError

if TYPE_CHECKING:
    from corral.recipes.named import Rows
    from corral.worlds import Policy, World
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
    dataset: Dataset = None,
    split: Split = None,
    episodes: Annotated[int, typer.Option(min=1, help="Games to play.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the first game; the next has seed + 1.")] = 0,
    temperature: Annotated[float, typer.Option(min=0.0, help="Of a model; 0 is greedy.")] = 0.0,
    install: Install = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per game.")] = False,
) -> None:
    """Play a world yourself, or watch a scripted player or a model.

    The world brings what is to be played, or --dataset does: the game of seed n is row n. A run
    folder plays the rows of its run, in the run's own worlds.

    Example: corral play wordle --policy solver --episodes 3 --json
    """
    if policy is not None and model is not None:
        raise UsageError("--policy and --model are two players: give one of them, or none to play.")
    _refuse_run_folder(env)
    # A person plays at standard output as it is.
    with prints_apart() if json else nullcontext():
        world, rows = _world_and_rows(env, model, dataset, split, install=install)
        if model is not None:
            # The run's reward functions read the columns of its own rows.
            scored_as = env if dataset is None else None
            games = _model_games(
                world, model, episodes, seed, temperature, is_shown=not json, scored_as=scored_as
            )
        elif policy is not None:
            player = world.policy(policy)
            games = _scripted_games(world, player, episodes, seed, is_shown=not json)
        else:
            games = _human_games(world, episodes, seed)
        results, errors = _played(games, world, seed, has_rows=rows is not None, json=json)
    if not json:
        columns = list(results[0])
        shown = [[result[name] for name in columns] for result in results]
        screen.print(table("Games", columns, shown))
    if errors:
        raise EnvironmentFault(f"{len(errors)} of {episodes} games ended in a fault: {errors[0]}")


def _played(
    games: Iterator[tuple[Result, str | None]],
    world: "World",
    seed: int,
    *,
    has_rows: bool,
    json: bool,
) -> tuple[list[Result], list[str]]:
    """Play all games: their results, and what failed."""
    results: list[Result] = []
    errors: list[str] = []
    try:
        for result, error in games:
            results.append(result)
            errors += [error] if error else []
            if json:
                emit(result)
    except UsageError as error:
        if has_rows or set(world.tasks(seed, 1)[0]) != {"prompt"}:
            raise
        raise UsageError(f"{error} (Rows with more columns than a prompt: --dataset.)") from error
    return results, errors


def _refuse_run_folder(env: str) -> None:
    from corral.track import RunFolder

    config = RunFolder(Path(env)).config_path
    if not config.is_file():
        return
    named = tomllib.loads(config.read_text(encoding="utf-8")).get("environment") or "WORLD"
    specs = [named] if isinstance(named, str) else list(named.values())
    commands = " or ".join(shlex.join(["corral", "play", spec, "--model", env]) for spec in specs)
    raise UsageError(f"{env} is a run folder, not a world. Its model plays with: {commands}")


def _world_and_rows(
    env: str, model: str | None, dataset: str | None, split: str | None, *, install: bool
) -> "tuple[World, Rows | None]":
    """What is played: on the rows of ``--dataset``, or of the run whose model plays.

    Without either the world brings what is to be played.
    """
    world = wanted_world(env, install=install)
    rows = None
    if dataset is not None:
        rows = given_rows(dataset, split)
        check_given_rows(rows, {None: world})
    elif model is not None:
        from corral.recipes.evaluating import rows_of_run
        from corral.recipes.folders import recipe_of

        recipe = recipe_of(Path(model))
        rows = None if recipe is None else rows_of_run(recipe, env)
    return (world if rows is None else world.on(rows)), rows


def _human_games(world: "World", episodes: int, seed: int) -> Iterator[tuple[Result, str | None]]:
    from corral.worlds.play import summary

    for game_seed in range(seed, seed + episodes):
        game = _human_game(world, game_seed)
        yield summary(world, game), game.error


def _scripted_games(
    world: "World", player: "Policy", episodes: int, seed: int, *, is_shown: bool
) -> Iterator[tuple[Result, str | None]]:
    from corral.cli.human import show_opening, show_turn
    from corral.worlds.play import play_episodes, summary

    for game in play_episodes(world, player, episodes=episodes, seed=seed):
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
    world: "World",
    model: str,
    episodes: int,
    seed: int,
    temperature: float,
    *,
    is_shown: bool,
    scored_as: str | None,
) -> Iterator[tuple[Result, str | None]]:
    quiet_libraries()
    from corral.recipes.evaluating import play_model_games, rewards_of, rules_of
    from corral.recipes.folders import newest_model, recipe_of

    path, recipe = newest_model(Path(model)) or model, recipe_of(Path(model))
    rules = rules_of(recipe)
    functions = rewards_of(recipe, scored_as)
    for played, row in play_model_games(
        path, world, rules, episodes, seed, temperature, functions=functions
    ):
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
