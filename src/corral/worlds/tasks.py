"""Drawing the rows of a world: from the finite things it can hide, or as seeds of games."""

import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

from corral.errors import UsageError
from corral.worlds.world import Row, TaskSource

T = TypeVar("T")

FIRST_HELD_OUT_SEED = 10**9
"""Seeds of games from here on are played in evaluations only."""
_ONE_IS_KEPT_OF = 10
"""One of so many tasks that have an order is played in evaluations only."""


def game_seeds(*, seed: int, count: int) -> list[int]:
    """``count`` seeds of games to train on, none of which is held out."""
    rng = _stream(seed)
    return [rng.randrange(FIRST_HELD_OUT_SEED) for _ in range(_checked(count))]


def held_out_seeds(count: int) -> range:
    """The seeds of evaluations: always the same, and never among those of training."""
    return range(FIRST_HELD_OUT_SEED, FIRST_HELD_OUT_SEED + count)


def seeded_rows(prompt: str) -> tuple[TaskSource, Callable[[int], list[Row]]]:
    """The rows ``{"prompt", "seed"}`` of a game whose seed is all it needs.

    Returns:
        ``tasks`` and ``evaluation_tasks`` of a world.
    """

    def tasks(seed: int, count: int) -> list[Row]:
        return [{"prompt": prompt, "seed": one} for one in game_seeds(seed=seed, count=count)]

    def evaluation_tasks(count: int) -> list[Row]:
        return [{"prompt": prompt, "seed": one} for one in held_out_seeds(count)]

    return tasks, evaluation_tasks


def place_of(seed: int, count: int) -> int:
    """The place that a seed of a game stands for, among ``count`` tasks that have an order.

    Seeds to train on stand for places from the first one on, and again from there; those of
    evaluations for the last tenth, which no other seed stands for.

    Raises:
        UsageError: There are no tasks.
    """
    if count < 1:
        raise UsageError(f"count={count}: there must be a task at least.")
    kept = count // _ONE_IS_KEPT_OF or min(1, count - 1)
    if seed >= FIRST_HELD_OUT_SEED and kept:
        return count - kept + (seed - FIRST_HELD_OUT_SEED) % kept
    return seed % (count - kept)


def draw_in_passes(items: Sequence[T], *, seed: int, count: int) -> list[T]:
    """``count`` items: shuffled pass after pass, so that none is ahead by more than one."""
    rng = _stream(seed)
    drawn: list[T] = []
    while len(drawn) < _checked(count):
        drawn += rng.sample(items, len(items))
    return drawn[:count]


def spread(items: Sequence[T], *, seed: int, count: int) -> list[T]:
    """``count`` different items spread evenly: one drawn from each of ``count`` equal stretches."""
    if not 0 <= count <= len(items):
        raise UsageError(f"count={count}: must be from 0 to {len(items)}, each item once.")
    rng = random.Random(seed)
    edges = [place * len(items) // count for place in range(count + 1)] if count else [0]
    return [items[rng.randrange(low, high)] for low, high in pairwise(edges)]


def _stream(seed: int) -> random.Random:
    return random.Random(f"tasks {seed}")  # apart from the streams of players with the same seed


def _checked(count: int) -> int:
    if count < 0:
        raise UsageError(f"count={count}: must be 0 or more.")
    return count
