"""Scoring: reward functions over played groups, and the weighted sum.

Reward columns are the user's functions in the order given, then those of environments with
``get_reward``: one for each of its parts, or one named after the class; weight 1. The latter are
filled by the player when an episode ends; this module has the functions called and adds all up.

Only episodes that are not faults are shown to reward functions, in one call a function for all
groups together. A fault has no reward and thereby leaves its group.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from corral.errors import UsageError
from corral.records import Episode, Group, Message
from corral.rewards import weighted_sum
from corral.rollout.played import PlayedGroup
from corral.rollout.reward_calls import call_all
from corral.rollout.reward_functions import RewardFunction
from corral.rollout.samples import completion_ids

_NOT_COLUMNS = frozenset({"prompt", "completion", "completion_ids"})
"""Dataset columns that reward functions do not get under their own name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Groups with their rewards, and what reward functions logged on the way."""

    groups: tuple[Group, ...]
    names: tuple[str, ...]
    """Reward columns in order."""
    weights: tuple[float, ...]
    """One for each name."""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    """By ``log_metric`` name: the mean over its calls."""
    extra: Mapping[str, Sequence[Any]] = field(default_factory=dict[str, Sequence[Any]])
    """By ``log_extra`` column: one value for each episode that is not a fault, in order."""


async def score(
    played: Sequence[PlayedGroup],
    functions: Sequence[RewardFunction] = (),
    *,
    trainer_state: object = None,
) -> Scored:
    """Call every reward function once over all episodes that can be scored, and add up.

    A function receives those of these keyword arguments that its signature takes, each a list with
    one entry an episode unless said otherwise: ``prompts`` (messages, the environment's observation
    merged in), ``completions`` (messages; both are text where the data's prompt is text and there
    are neither tools nor environments), ``completion_ids`` (sampled and tool tokens), every
    column of the data, ``environments`` (if there are any: the instances that were played),
    ``trainer_state`` (one object; these two are the run's own, all else is the function's to
    change), ``log_metric(name, value)`` and ``log_extra(column, values)``.

    Synchronous functions run one after another in a thread, then all asynchronous ones together.
    None or NaN for an episode means that this function does not apply to it.

    Raises:
        UsageError: A function raised, or returned the wrong number or kind of values.
    """
    columns = [*functions, *_environment_columns(played, functions)]
    seats = [(group, place) for group in played for place in _scorable(group.group)]
    log = _Log(count=len(seats))
    arguments = _arguments(seats, trainer_state, log)
    values = await call_all(functions, arguments, len(seats)) if seats else {}
    rewards: list[dict[str, float | None]] = []
    for row, (group, place) in enumerate(seats):
        own = group.group.episodes[place].rewards
        rewards.append(
            {
                column.name: values[column.name][row]
                if column.name in values
                else own.get(column.name)
                for column in columns
            }
        )
    weights = {column.name: column.weight for column in columns}
    by_seat = {(id(group), place): rewards[row] for row, (group, place) in enumerate(seats)}
    return Scored(
        groups=tuple(_rewarded(group, by_seat, weights) for group in played),
        names=tuple(weights),
        weights=tuple(weights.values()),
        metrics=log.means(),
        extra=log.extra,
    )


class _Log:
    """Collects what reward functions log; they may do so from a thread or from coroutines."""

    def __init__(self, *, count: int) -> None:
        self._count = count
        self._metrics: dict[str, list[float]] = {}
        self.extra: dict[str, Sequence[Any]] = {}

    def metric(self, name: str, value: float) -> None:
        self._metrics.setdefault(name, []).append(float(value))

    def column(self, name: str, values: Sequence[Any]) -> None:
        if len(values) != self._count:
            raise UsageError(
                f"log_extra({name!r}) got {len(values)} values for {self._count} completions."
            )
        self.extra[name] = list(values)

    def means(self) -> dict[str, float]:
        return {name: math.fsum(values) / len(values) for name, values in self._metrics.items()}


_Seat = tuple[PlayedGroup, int]
"""An episode by its played group and its place in it."""


def _scorable(group: Group) -> list[int]:
    return [place for place, episode in enumerate(group.episodes) if not episode.outcome.is_fault()]


def _environment_columns(
    played: Sequence[PlayedGroup], functions: Sequence[RewardFunction]
) -> list[RewardFunction]:
    """Columns the player has filled: names in order of first appearance, weight 1."""
    taken = {function.name for function in functions}
    names: dict[str, None] = {}
    for group in played:
        for episode in group.group.episodes:
            names.update(dict.fromkeys(episode.rewards))
    clashes = taken & set(names)
    if clashes:
        raise UsageError(
            f"Both a reward function and an environment's own reward are named {min(clashes)!r}: "
            "rename the function, as an environment's reward is called after its class or parts."
        )
    return [RewardFunction(name=name, function=_filled_by_player) for name in names]


def _filled_by_player(**kwargs: Any) -> None:
    """Stands in for the environment's ``get_reward``, which ran when its episode ended."""


def _arguments(seats: Sequence[_Seat], trainer_state: object, log: _Log) -> dict[str, Any]:
    episodes = [group.group.episodes[place] for group, place in seats]
    environments = [group.environments[place] for group, place in seats]
    names = dict.fromkeys(name for episode in episodes for name in episode.task.columns)
    arguments: dict[str, Any] = {
        name: [episode.task.columns.get(name) for episode in episodes]
        for name in names
        if name not in _NOT_COLUMNS
    }
    arguments |= {
        "prompts": [_prompt(group, place) for group, place in seats],
        "completions": [_completion(group, place) for group, place in seats],
        "completion_ids": [completion_ids(episode) for episode in episodes],
        "trainer_state": trainer_state,
        "log_metric": log.metric,
        "log_extra": log.column,
    }
    if any(environment is not None for environment in environments):
        arguments["environments"] = environments
    return arguments


def _prompt(played: PlayedGroup, place: int) -> list[Message] | str:
    """The messages before the first turn; text where the data has text that is only continued."""
    episode = played.group.episodes[place]
    messages = list(episode.messages[: episode.completion_start])
    return messages[0]["content"] if played.is_text else messages


def _completion(played: PlayedGroup, place: int) -> list[Message] | str:
    """The messages after the prompt; an empty answer where time ran out before the first turn."""
    episode = played.group.episodes[place]
    messages = list(episode.messages[episode.completion_start :]) or [
        Message(role="assistant", content="")
    ]
    return messages[0]["content"] if played.is_text else messages


def _rewarded(
    played: PlayedGroup,
    rewards: Mapping[tuple[int, int], Mapping[str, float | None]],
    weights: Mapping[str, float],
) -> Group:
    episodes: list[Episode] = []
    for place, episode in enumerate(played.group.episodes):
        own = rewards.get((id(played), place))
        if own is None:
            episodes.append(replace(episode, rewards={}, reward=None))
            continue
        total = weighted_sum(own, weights)
        episodes.append(replace(episode, rewards=dict(own), reward=total))
    return replace(played.group, episodes=tuple(episodes))
