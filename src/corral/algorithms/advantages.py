"""Advantages: how much better an episode did than the others of its group.

Plain Python in float64: rewards are a few hundred numbers, and exactness matters more than speed.
Formulas: TRL 1.16's GRPO trainer (Bessel-corrected standard deviation, epsilon 1e-4).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from corral.errors import UsageError

STD_EPSILON = 1e-4
"""Added to the standard deviation before dividing; the reference's value."""

Scored = float | None
"""A reward, or None where there is none to compare."""

_T = TypeVar("_T")


class Scale(StrEnum):
    """What the centred rewards are divided by."""

    GROUP = "group"
    """The standard deviation of the episode's group."""
    BATCH = "batch"
    """The standard deviation of all episodes of the step, over all ranks."""
    NONE = "none"
    """Nothing."""


class Aggregation(StrEnum):
    """How several reward functions become one number."""

    SUM_THEN_NORMALIZE = "sum_then_normalize"
    """Weighted sum first, then the group is normalised."""
    NORMALIZE_THEN_SUM = "normalize_then_sum"
    """Each function is normalised in its group; the sum is whitened over the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advantages:
    """One entry an episode, in the order the rewards were given."""

    values: list[float]
    """0.0 for an episode nothing scored."""
    rewards: list[Scored]
    """Weighted sum of the functions; None when every function abstained."""
    std_is_zero: list[bool]
    """True where the rewards that normalise this episode are all equal: it teaches nothing."""


def group_advantages(
    rewards: Sequence[Sequence[float | None]],
    group: Sequence[int],
    *,
    weights: Sequence[float] | None = None,
    scale: Scale | str = Scale.GROUP,
    aggregation: Aggregation | str = Aggregation.SUM_THEN_NORMALIZE,
) -> Advantages:
    """The advantage of each episode over its group.

    Equal rewards give exactly 0, whatever rounding does to their mean. Groups may have any size and
    their members need not be adjacent. ``Scale.BATCH`` and ``NORMALIZE_THEN_SUM`` compare with all
    episodes given, so a distributed run passes those of every rank.

    Args:
        rewards: For each episode one entry a reward function; None or NaN when it abstained.
        group: For each episode which group it belongs to.
        weights: One for each function, 1 by default.
    """
    table = [[_scored(value) for value in row] for row in rewards]
    weights = _weights(weights, functions=len(table[0]) if table else 0)
    if len(group) != len(table) or any(len(row) != len(weights) for row in table):
        raise UsageError(
            f"{len(table)} reward rows with {sorted({len(row) for row in table})} functions do not "
            f"fit {len(group)} group ids and {len(weights)} weights: give one row and one group id "
            "an episode, and one weight a function."
        )
    totals = [_weighted_sum(row, weights) for row in table]
    if Aggregation(aggregation) is Aggregation.NORMALIZE_THEN_SUM:
        return _normalize_then_sum(table, totals, group, weights)
    return _sum_then_normalize(totals, group, Scale(scale))


def _sum_then_normalize(totals: list[Scored], group: Sequence[int], scale: Scale) -> Advantages:
    centred = _by_group(totals, group, _centre)
    flat_groups = _by_group(totals, group, lambda values: [_is_flat(values)] * len(values))
    if scale is Scale.NONE:
        return Advantages(values=_filled(centred), rewards=totals, std_is_zero=flat_groups)
    if scale is Scale.GROUP:
        stds = _by_group(totals, group, lambda values: [_std(values)] * len(values))
        flat = flat_groups
    else:
        stds = [_std(totals)] * len(totals)
        flat = [_is_flat(totals)] * len(totals)
    scaled = [_divide(value, std) for value, std in zip(centred, stds, strict=True)]
    return Advantages(values=_filled(scaled), rewards=totals, std_is_zero=flat)


def _normalize_then_sum(
    table: list[list[Scored]], totals: list[Scored], group: Sequence[int], weights: Sequence[float]
) -> Advantages:
    columns = [_by_group([row[k] for row in table], group, _whiten) for k in range(len(weights))]
    summed = [
        _weighted_sum([column[index] for column in columns], weights) for index in range(len(table))
    ]
    flat = [_is_flat(summed)] * len(summed)
    return Advantages(values=_filled(_whiten(summed)), rewards=totals, std_is_zero=flat)


def _by_group(
    values: list[Scored], group: Sequence[int], transform: Callable[[list[Scored]], list[_T]]
) -> list[_T]:
    members: dict[int, list[int]] = {}
    for index, name in enumerate(group):
        members.setdefault(name, []).append(index)
    placed: dict[int, _T] = {}
    for indices in members.values():
        results = transform([values[index] for index in indices])
        placed.update(zip(indices, results, strict=True))
    return [placed[index] for index in range(len(values))]


def _centre(values: list[Scored]) -> list[Scored]:
    present = _present(values)
    if _is_flat(values):
        return [None if value is None else 0.0 for value in values]
    mean = math.fsum(present) / len(present)
    return [None if value is None else value - mean for value in values]


def _whiten(values: list[Scored]) -> list[Scored]:
    std = _std(values)
    return [_divide(value, std) for value in _centre(values)]


def _std(values: list[Scored]) -> float:
    present = _present(values)
    if _is_flat(values):
        return 0.0
    mean = math.fsum(present) / len(present)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in present) / (len(present) - 1))


def _is_flat(values: list[Scored]) -> bool:
    # Comparing with the standard deviation instead would let rounding make a signal of equal
    # rewards: seven float32 rewards of 0.2 have one of 1.6e-8.
    present = _present(values)
    return not present or max(present) == min(present)


def _divide(value: Scored, std: float) -> Scored:
    return None if value is None else value / (std + STD_EPSILON)


def _present(values: list[Scored]) -> list[float]:
    return [value for value in values if value is not None]


def _filled(values: list[Scored]) -> list[float]:
    return [0.0 if value is None else value for value in values]


def _weighted_sum(row: Sequence[Scored], weights: Sequence[float]) -> Scored:
    terms = [
        weight * value for value, weight in zip(row, weights, strict=True) if value is not None
    ]
    return math.fsum(terms) if terms else None


def _scored(value: float | None) -> Scored:
    if value is None or math.isnan(value):
        return None
    if math.isinf(value):
        raise UsageError(f"A reward is {value}: return a finite number, or None for no reward.")
    return float(value)


def _weights(weights: Sequence[float] | None, *, functions: int) -> Sequence[float]:
    return [1.0] * functions if weights is None else weights
