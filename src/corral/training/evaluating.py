"""Evaluating a policy: every row of a data set is played, scored, compared and measured.

Nothing of it reaches training: no gradient, no count, no draw from a random stream.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import Any

import numpy
import torch

from corral.errors import UsageError
from corral.records import Task
from corral.rollout import Scored
from corral.rollout.seeds import derive
from corral.training.grpo_config import GRPOConfig
from corral.training.row_checks import Kinds, check_rows
from corral.training.task_stream import is_stream
from corral.training.tasks import rows_of, task_from_row


def evaluation_sets(data: Any) -> dict[str | None, Any]:
    """By name, or under None where there is one data set without a name."""
    if data is None:
        return {}
    if isinstance(data, Mapping):
        return dict(data)
    return {None: data}


def evaluation_rows(data: Any) -> Sequence[Any]:
    """The rows of a data set to evaluate on, of a stream too."""
    return list(data) if is_stream(data) else rows_of(data, name="eval_dataset")


def evaluation_tasks(rows: Sequence[Any], kinds: Kinds, seed: int) -> list[Task]:
    """The tasks of an evaluation: the same each time, so that evaluations can be compared.

    Raises:
        UsageError: There are no rows, or one cannot be played in these environments.
    """
    check_rows(rows, kinds, name="eval_dataset")
    if not rows:
        raise UsageError("eval_dataset has no rows: give at least one task.")
    return [
        task_from_row(row, index=index, seed=derive(seed, "evaluation", index))
        for index, row in enumerate(rows)
    ]


def members_of(args: GRPOConfig) -> int:
    """Episodes of each task."""
    return args.num_generations_eval or args.num_generations


def played_in_parts(
    tasks: Sequence[Task],
    args: GRPOConfig,
    processes: int,
    play: Callable[[Sequence[Task], int], Scored],
) -> Scored:
    """All tasks played, as many at the same time as ``per_device_eval_batch_size`` says."""
    members = members_of(args)
    at_once = max(args.per_device_eval_batch_size * processes // members, 1)
    parts = [
        play(tasks[start : start + at_once], members) for start in range(0, len(tasks), at_once)
    ]
    return _joined(parts)


@contextmanager
def random_streams_kept() -> Iterator[None]:
    """Leave Python's, NumPy's and torch's random streams where they were.

    Environments and reward functions may draw from them.
    """
    python, arrays = random.getstate(), numpy.random.get_state()
    devices = range(torch.cuda.device_count())
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            random.setstate(python)
            numpy.random.set_state(arrays)


def _joined(parts: Sequence[Scored]) -> Scored:
    weights = {n: w for part in parts for n, w in zip(part.names, part.weights, strict=True)}
    logged = dict.fromkeys(name for part in parts for name in part.metrics)
    columns = dict.fromkeys(name for part in parts for name in part.extra)
    return Scored(
        groups=tuple(group for part in parts for group in part.groups),
        names=tuple(weights),
        weights=tuple(weights.values()),
        metrics={
            name: fmean(part.metrics[name] for part in parts if name in part.metrics)
            for name in logged
        },
        extra={
            name: [value for part in parts for value in _column(part, name)] for name in columns
        },
    )


def _column(part: Scored, name: str) -> Sequence[Any]:
    episodes = (episode for group in part.groups for episode in group.episodes)
    scorable = sum(not episode.outcome.is_fault() for episode in episodes)
    return part.extra.get(name, [None] * scorable)
