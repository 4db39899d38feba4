"""The games that a recipe plays after each of its stages."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corral.engines.torch_engine import TorchEngine
from corral.env import prepare
from corral.evaluation import Evaluation, GameResult, play_games, result_of, summarise
from corral.recipes.named import (
    Rows,
    Worlds,
    absolute_spec,
    factory_of,
    find_rewards,
    rows_at,
)
from corral.recipes.recipe import Recipe
from corral.records import Episode, SamplingParams, Task
from corral.rollout import Player, RewardFunction, reward_functions
from corral.rollout.blocking import run_blocking
from corral.rollout.seeds import derive
from corral.training import GRPOConfig
from corral.training.models import chat_format, load_model, load_processing_class
from corral.training.playing import environment_kinds, limits_of, tool_schemas
from corral.training.tasks import task_from_row
from corral.worlds import World
from corral.worlds.play import MAX_CALLS, PlayedGame, game_row, play_scripted


def rules_of(recipe: Recipe | None) -> GRPOConfig:
    """Limits and chat settings that games are played by: the recipe's, where it has any."""
    if recipe is not None and recipe.grpo is not None:
        return recipe.grpo.train
    return GRPOConfig(stop_when_done=True)


def rewards_of(recipe: Recipe | None, spec: str | None) -> Sequence[RewardFunction]:
    """The reward functions of a recipe whose one environment is ``spec``; else none."""
    if recipe is None or recipe.grpo is None or spec is None:
        return ()
    if recipe.environment != absolute_spec(spec):
        return ()
    return reward_functions(find_rewards(recipe.grpo.rewards), recipe.grpo.train.reward_weights)


def evaluate_model(
    path: str | Path, worlds: Worlds, recipe: Recipe
) -> tuple[Evaluation, list[Episode]]:
    """Play the recipe's evaluation games with the model at ``path`` by the rules of training."""
    section = recipe.evaluation
    return evaluate(
        path, worlds, recipe, rules_of(recipe), games=section.games, temperature=section.temperature
    )


def evaluate(
    path: str | Path,
    worlds: Worlds,
    recipe: Recipe | None,
    args: GRPOConfig,
    *,
    games: int,
    temperature: float,
    rows: Rows | None = None,
) -> tuple[Evaluation, list[Episode]]:
    """Play ``games`` evaluation tasks once each: the recipe's, or else the world's.

    Args:
        args: Whose limits on turns, tokens and seconds apply.
        temperature: 0 is greedy.
        rows: What to play instead: its first ``games``.
    """
    started = time.perf_counter()
    player = _player(path, worlds, args, temperature)
    chosen = _evaluation_rows(worlds, recipe, games) if rows is None else rows[:games]
    tasks = _tasks(chosen, "evaluation")
    specs = recipe.grpo.rewards if recipe is not None and recipe.grpo is not None else []
    functions = reward_functions(find_rewards(specs), args.reward_weights)

    def is_win(task: Task, environment: Any) -> bool:
        return worlds[None if None in worlds else task.environment].is_win(environment)

    episodes, wins = run_blocking(play_games(player, tasks, is_win=is_win, functions=functions))
    results = [
        result_of(one, is_won=won, name=_game_of(worlds, one.task))
        for one, won in zip(episodes, wins, strict=True)
    ]
    return summarise(results, time.perf_counter() - started), episodes


def evaluate_scripted(name: str, world: World, recipe: Recipe) -> Evaluation:
    """Play the recipe's evaluation games with the world's scripted player called ``name``."""
    started = time.perf_counter()
    policy, kind = world.policy(name), prepare(world.factory)
    max_calls = rules_of(recipe).max_tool_calling_iterations or MAX_CALLS
    rows = _evaluation_rows({None: world}, recipe, recipe.evaluation.games)
    games = [
        play_scripted(
            world, policy, dict(row), derive("evaluation", index), kind=kind, max_calls=max_calls
        )
        for index, row in enumerate(rows)
    ]
    return summarise([_result_of(world, game) for game in games], time.perf_counter() - started)


def play_model_games(
    path: str | Path,
    world: World,
    args: GRPOConfig,
    games: int,
    seed: int,
    temperature: float,
    *,
    functions: Sequence[RewardFunction] = (),
) -> list[tuple[Episode, dict[str, Any]]]:
    """Games with the seeds ``seed``, ``seed + 1``, ...: episodes and JSON-ready results.

    Args:
        functions: Rewards besides the environment's own.
    """
    player = _player(path, {None: world}, args, temperature)
    seeds = range(seed, seed + games)
    tasks = _tasks([row for one in seeds for row in world.tasks(one, 1)], "play")
    episodes, wins = run_blocking(
        play_games(
            player,
            tasks,
            is_win=lambda _, environment: world.is_win(environment),
            functions=functions,
        )
    )
    return [
        (
            episode,
            game_row(
                world,
                seed=game_seed,
                outcome=episode.outcome,
                reward=episode.reward,
                turns=episode.turns,
                is_won=is_won,
            ),
        )
        for game_seed, episode, is_won in zip(seeds, episodes, wins, strict=True)
    ]


def _game_of(worlds: Worlds, task: Task) -> str | None:
    """Which of several games a task is."""
    return worlds[None].game_of(task.columns) if None in worlds else task.environment


def _result_of(world: World, game: PlayedGame) -> GameResult:
    return GameResult(
        is_won=game.is_win,
        reward=game.reward,
        is_fault=game.outcome.is_fault(),
        has_valid_call=not all(turn.is_error for turn in game.turns),
        metrics=game.metrics,
        name=world.game_of(game.row),
    )


def rows_of_run(recipe: Recipe, spec: str) -> Rows | None:
    """The rows that a run's evaluations play in the environment ``spec``.

    None: it is none of the run's environments, or one that brings its own rows.
    """
    own = {name for name, one in recipe.environments().items() if one == absolute_spec(spec)}
    rows = _rows_given(recipe) if own else None
    if rows is None or None in own:
        return rows
    # Of several environments the column says which plays a row, and is not for `reset`.
    return [
        {column: value for column, value in row.items() if column != "environment"}
        for row in rows
        if row.get("environment") in own
    ]


def _evaluation_rows(worlds: Worlds, recipe: Recipe | None, games: int) -> Rows:
    rows = _rows_given(recipe) if recipe is not None else None
    if rows is not None:
        return rows[:games]
    return worlds[None].evaluation_tasks(games)  # several are played on data, as recipes check


def _rows_given(recipe: Recipe) -> Rows | None:
    """The rows of data that a recipe's evaluations play; None: the world's own."""
    if recipe.evaluation.dataset is not None:
        return rows_at(recipe.evaluation.dataset, "evaluation.dataset")
    if recipe.grpo is not None and recipe.grpo.dataset is not None:
        return rows_at(recipe.grpo.dataset, "grpo.dataset")
    return None


def _tasks(rows: Sequence[Mapping[str, Any]], purpose: str) -> list[Task]:
    return [
        task_from_row(row, index=index, seed=derive(purpose, index))
        for index, row in enumerate(rows)
    ]


def _player(path: str | Path, worlds: Worlds, args: GRPOConfig, temperature: float) -> Player:
    model = load_model(path, args.model_init_kwargs)
    tokenizer = load_processing_class(path, None)
    kinds = environment_kinds(factory_of(worlds), ())
    chat = chat_format(tokenizer, model, tool_schemas(kinds, ()), args.chat_template_kwargs)
    return Player(
        TorchEngine(model, max_batch=args.max_batch),
        chat,
        kinds=kinds,
        limits=limits_of(args),
        sampling=SamplingParams(max_new_tokens=1, stop_ids=chat.stop_ids, temperature=temperature),
        stop_when_done=args.stop_when_done,
    )
