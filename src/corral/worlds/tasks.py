"""Drawing the rows of a world from the finite things it can hide."""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

from corral.errors import UsageError

T = TypeVar("T")


def draw_in_passes(items: Sequence[T], *, seed: int, count: int) -> list[T]:
    """``count`` items: shuffled pass after pass, so that none is ahead by more than one."""
    if count < 0:
        raise UsageError(f"count={count}: must be 0 or more.")
    rng = random.Random(f"tasks {seed}")  # apart from the streams of players with the same seed
    drawn: list[T] = []
    while len(drawn) < count:
        drawn += rng.sample(items, len(items))
    return drawn[:count]


def spread(items: Sequence[T], *, seed: int, count: int) -> list[T]:
    """``count`` different items spread evenly: one drawn from each of ``count`` equal stretches."""
    if not 0 <= count <= len(items):
        raise UsageError(f"count={count}: must be from 0 to {len(items)}, each item once.")
    rng = random.Random(seed)
    edges = [place * len(items) // count for place in range(count + 1)] if count else [0]
    return [items[rng.randrange(low, high)] for low, high in pairwise(edges)]
