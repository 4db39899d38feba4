"""``corral play``: a person, a scripted player or a model in a world."""

from pathlib import Path
from typing import Annotated, Any

import typer

from corral.cli.human import human_policy, show_text, show_turn
from corral.cli.output import emit, say, screen, table
from corral.errors import UsageError
from corral.worlds import World, find_world
from corral.worlds.play import PlayedGame, play_episodes, play_scripted, summary


def play(
    env: Annotated[str, typer.Argument(help="Built-in name, module:Class or path.py:Class.")],
    policy: Annotated[
        str | None, typer.Option(help="A scripted player of the world, such as random or solver.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="A run folder, a model folder or a hub id plays.")
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Games to play.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the first game; the next has seed + 1.")] = 0,
    temperature: Annotated[float, typer.Option(min=0.0, help="Of a model; 0 is greedy.")] = 0.0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per game.")] = False,
) -> None:
    """Play a world: as yourself in the terminal, or watch a scripted player or a model.

    Example: corral play wordle --policy solver --episodes 3 --json
    """
    if policy is not None and model is not None:
        raise UsageError("--policy and --model are two players: give one of them, or none to play.")
    world = find_world(env)
    if model is not None:
        results = _model_games(world, model, episodes, seed, temperature, is_shown=not json)
    else:
        results = _games(world, policy, episodes, seed, is_shown=not json)
    if json:
        for result in results:
            emit(result)
        return
    columns = list(results[0])
    rows = [[result[name] for name in columns] for result in results]
    screen.print(table("Games", columns, rows))


def _games(
    world: World, policy: str | None, episodes: int, seed: int, *, is_shown: bool
) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    if policy is None:
        for game_seed in range(seed, seed + episodes):
            results.append(summary(world, _human_game(world, game_seed)))
        return results
    for game in play_episodes(world, world.policy(policy), episodes=episodes, seed=seed):
        if is_shown:
            show_text(game.row.get("prompt"))
            show_text(game.observation)
            for turn in game.turns:
                show_turn(turn)
        results.append(summary(world, game))
    return results


def _human_game(world: World, seed: int) -> PlayedGame:
    (row,) = world.tasks(seed, 1)
    show_text(row.get("prompt"))
    game = play_scripted(world, human_policy(world), row, seed)
    if game.turns:
        show_text(game.turns[-1].content)
    return game


def _model_games(
    world: World, model: str, episodes: int, seed: int, temperature: float, *, is_shown: bool
) -> list[dict[str, Any]]:
    from corral.recipes.evaluating import play_model_games
    from corral.recipes.run import newest_model

    path = newest_model(Path(model)) or model
    results: list[dict[str, Any]] = []
    for played, row in play_model_games(path, world, episodes, seed, temperature):
        if is_shown:
            for message in played.messages:
                say(f"{message['role']}: {_text(message)}")
        results.append(row)
    return results


def _text(message: Any) -> str:
    calls = [
        f"{call['function']['name']}({call['function']['arguments']})"
        for call in message.get("tool_calls", ())
    ]
    thought = message.get("reasoning_content")
    parts = [f"({thought})" if thought else "", str(message["content"] or ""), *calls]
    return " ".join(part for part in parts if part)
