"""What a configuration and a user's arguments make of playing: kinds, rows, limits, the player."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from corral.chat import ChatFormat
from corral.engines.protocol import Engine
from corral.env import EnvironmentKind, ToolSet, prepare, tools_of
from corral.errors import UsageError
from corral.records import SamplingParams
from corral.rollout import Limits, Player, RewardFunction, reward_functions
from corral.training.grpo_config import GRPOConfig
from corral.training.reward_models import with_reward_models
from corral.training.row_checks import check_rows
from corral.training.run_settings import check_stream
from corral.training.task_stream import TaskStream, is_stream
from corral.training.tasks import TaskSource, rows_of

Factory = Callable[[], Any]


def player_of(
    args: GRPOConfig,
    engine: Engine,
    chat: ChatFormat,
    kinds: Mapping[str | None, EnvironmentKind],
    tools: Sequence[Callable[..., Any]],
) -> Player:
    """The player that a configuration asks for."""
    return Player(
        engine,
        chat,
        kinds=kinds,
        tools=tools,
        limits=limits_of(args),
        sampling=SamplingParams(
            max_new_tokens=args.max_completion_length,
            stop_ids=chat.stop_ids,
            temperature=args.temperature,
            top_p=args.top_p,
            top_k=args.top_k,
            min_p=args.min_p or 0.0,
            repetition_penalty=args.repetition_penalty,
        ),
        stop_when_done=args.stop_when_done,
        retries=args.episode_retries,
        needs_an_episode=False,  # one bad row must not end a run; see TokenWatch
    )


def limits_of(args: GRPOConfig) -> Limits:
    """The limits on an episode that a configuration sets."""
    return Limits(
        turns=args.max_tool_calling_iterations,
        turn_tokens=args.max_turn_length,
        episode_tokens=args.max_completion_length,
        seconds=args.episode_timeout_s,
    )


def environment_kinds(
    factory: Factory | Mapping[str, Factory] | None, tools: Sequence[Callable[..., Any]]
) -> dict[str | None, EnvironmentKind]:
    """What is played, by the name in the column ``environment``; None: the only kind."""
    if factory is None:
        return {}
    if isinstance(factory, Mapping):
        return {name: prepare(one, standalone=tools) for name, one in factory.items()}
    return {None: prepare(factory, standalone=tools)}


def reward_columns(
    given: Any,
    processing_classes: Any,
    args: GRPOConfig,
    kinds: Mapping[str | None, EnvironmentKind],
    device: Any,
) -> Sequence[RewardFunction]:
    """The user's reward functions, models among them, named and weighed.

    Raises:
        UsageError: They do not fit together, or nothing scores.
    """
    callables = with_reward_models(given, processing_classes, args, device)
    functions = reward_functions(callables, args.reward_weights)
    if not functions and not any(kind.has_reward for kind in kinds.values()):
        raise UsageError(
            "No reward source provided: pass reward_funcs, or give the environment a method "
            "`def get_reward(self) -> float`."
        )
    return functions


def task_source(
    dataset: Any,
    kinds: Mapping[str | None, EnvironmentKind],
    args: GRPOConfig,
    *,
    per_generation: int,
) -> TaskSource | TaskStream:
    """Where the tasks of a run come from.

    Raises:
        UsageError: There is no data set and one is needed, or a row cannot be played.
    """
    order: dict[str, Any] = {
        "per_generation": per_generation,
        "seed": args.seed,
        "order_seed": args.data_seed,
        "is_shuffled": args.shuffle_dataset,
    }
    if is_stream(dataset):
        check_stream(args)
        return TaskStream(dataset, kinds, **order)
    rows = _rows_to_play(dataset, kinds, args)
    check_rows(rows, kinds)
    return TaskSource(rows, **order)


def _rows_to_play(
    dataset: Any, kinds: Mapping[str | None, EnvironmentKind], args: GRPOConfig
) -> Sequence[Any]:
    """The rows of the data set; without one, what lets a single environment bring the task."""
    if dataset is not None:
        return rows_of(dataset)
    if not kinds:
        raise UsageError("`train_dataset` is required when there is no environment.")
    if len(kinds) > 1 or None not in kinds:
        raise UsageError(
            "Several environments by name requires a `train_dataset` with a column `environment`."
        )
    if args.max_steps <= 0:
        raise UsageError("Without a train_dataset, `max_steps` must be set: nothing else ends it.")
    # The environment brings the task: reset() returns it.
    return [{"prompt": [{"role": "user", "content": ""}]}]


def tool_sets(
    kinds: Mapping[str | None, EnvironmentKind], tools: Sequence[Callable[..., Any]]
) -> dict[str | None, ToolSet]:
    """What a task shows, by the name of its environment; under None for tasks that name none."""
    return {name: kind.tools for name, kind in kinds.items()} or {None: tools_of(tools)}


def tool_schemas(
    kinds: Mapping[str | None, EnvironmentKind], tools: Sequence[Callable[..., Any]]
) -> list[dict[str, Any]]:
    """The schemas of all tools that any task shows."""
    return [schema for one in tool_sets(kinds, tools).values() for schema in one.schemas]
