"""What processes tell each other about their episodes.

Each call is a collective: every process makes it, whatever it has to tell. Names may differ between
them, as a process may have met environments or logged metrics that another has not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from accelerate import PartialState
from accelerate.utils import gather_object

from corral.algorithms import Advantages, group_advantages
from corral.records import Episode, Transcript
from corral.rollout import Scored, reward_matrix


def advantages_over_processes(scored: Scored, *, scale: str, aggregation: str) -> Advantages:
    """The advantages of this process's episodes, where need be compared with those of all."""
    weights = dict(gather_object(list(zip(scored.names, scored.weights, strict=True))))
    parts = gather_object([reward_matrix(scored.groups, list(weights))])
    every = group_advantages(
        [row for rewards, _ in parts for row in rewards],
        _told_apart([group for _, group in parts]),
        weights=list(weights.values()) if any(rewards for rewards, _ in parts) else None,
        scale=scale,
        aggregation=aggregation,
    )
    place = PartialState().process_index
    start = sum(len(rewards) for rewards, _ in parts[:place])
    own = slice(start, start + len(parts[place][0]))
    return Advantages(
        values=every.values[own], rewards=every.rewards[own], std_is_zero=every.std_is_zero[own]
    )


def gathered_episodes(episodes: Sequence[Episode]) -> list[Episode]:
    """The episodes of all processes as numbers need them: tokens, and neither messages nor images,
    which may be many megabytes."""
    return gather_object([_as_numbers(episode) for episode in episodes])


def _as_numbers(episode: Episode) -> Episode:
    spans = tuple(replace(span, images=()) for span in episode.transcript.spans)
    return replace(
        episode,
        task=replace(episode.task, prompt=(), columns={}),
        messages=(),
        transcript=Transcript(spans),
    )


def means_over_processes(metrics: Mapping[str, float]) -> dict[str, float]:
    """Each metric's mean over the processes that have it."""
    entries = gather_object(sorted(metrics.items()))
    names = dict.fromkeys(name for name, _ in entries)
    return {name: fmean(value for key, value in entries if key == name) for name in names}


def _told_apart(groups: list[list[int]]) -> list[int]:
    """Group numbers of all processes, each of which counted from 0."""
    numbers: dict[tuple[int, int], int] = {}
    keys = [(process, group) for process, part in enumerate(groups) for group in part]
    return [numbers.setdefault(key, len(numbers)) for key in keys]
