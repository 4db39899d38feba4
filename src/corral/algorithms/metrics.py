"""Metrics that add up: over micro-batches and ranks, weighted by what they were measured on.

A mean of means is biased towards small parts; so a metric travels as a sum with its weight, and
becomes a number once, in ``finish_metrics``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

import torch
from torch import Tensor


class Reduction(StrEnum):
    """How two parts of a metric become one."""

    MEAN = "mean"
    """Sums and weights add; the value is their quotient."""
    SUM = "sum"
    """Sums add."""
    MIN = "min"
    """The smaller one that has any weight."""
    MAX = "max"
    """The larger one that has any weight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One part of a metric; plain numbers, so that ranks can exchange it as an object."""

    reduction: Reduction
    value: float
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricTensor:
    """A metric still on the device; ``to_metrics`` fetches many of them in one transfer."""

    reduction: Reduction
    value: Tensor
    weight: Tensor


def mean_over(values: Tensor, weights: Tensor) -> MetricTensor:
    """The mean of ``values`` (0 where they don't count) over the number of true ``weights``."""
    value = torch.where(weights, values.detach(), 0.0).sum()
    return MetricTensor(reduction=Reduction.MEAN, value=value, weight=weights.sum())


def lowest(values: Tensor, present: Tensor) -> MetricTensor:
    """The least of the ``values`` that are ``present``."""
    inf = torch.full_like(values[:1].detach().sum(), float("inf"))
    value = torch.cat([torch.where(present, values.detach(), inf), inf[None]]).min()
    return MetricTensor(reduction=Reduction.MIN, value=value, weight=present.sum())


def highest(values: Tensor, present: Tensor) -> MetricTensor:
    """The greatest of the ``values`` that are ``present``."""
    least = lowest(-values, present)
    return MetricTensor(reduction=Reduction.MAX, value=-least.value, weight=least.weight)


def to_metrics(tensors: Mapping[str, MetricTensor]) -> dict[str, Metric]:
    """Fetch all metrics from the device at once."""
    if not tensors:
        return {}
    dtype = torch.promote_types(torch.float32, next(iter(tensors.values())).value.dtype)
    stacked = torch.stack(
        [part.detach().to(dtype) for one in tensors.values() for part in (one.value, one.weight)]
    )
    flat: list[float] = cast(Any, stacked).tolist()
    return {
        name: Metric(reduction=one.reduction, value=flat[2 * i], weight=flat[2 * i + 1])
        for i, (name, one) in enumerate(tensors.items())
    }


def combine_metrics(parts: Iterable[Mapping[str, Metric]]) -> dict[str, Metric]:
    """One mapping from those of several micro-batches or ranks; names need not be the same."""
    combined: dict[str, Metric] = {}
    for part in parts:
        for name, metric in part.items():
            combined[name] = _combine(combined[name], metric) if name in combined else metric
    return combined


def finish_metrics(metrics: Mapping[str, Metric]) -> dict[str, float]:
    """The value of each metric; one that was measured on nothing is 0 if a mean, else left out."""
    values: dict[str, float] = {}
    for name, metric in metrics.items():
        if metric.reduction is Reduction.MEAN:
            values[name] = metric.value / max(metric.weight, 1.0)
        elif metric.reduction is Reduction.SUM or metric.weight > 0:
            values[name] = metric.value
    return values


def _combine(first: Metric, second: Metric) -> Metric:
    if first.reduction is not second.reduction:
        raise ValueError(f"A metric is a {first.reduction} here and a {second.reduction} there.")
    return Metric(
        reduction=first.reduction,
        value=_merge(first.reduction, first.value, second.value),
        weight=first.weight + second.weight,
    )


def _merge(reduction: Reduction, first: float, second: float) -> float:
    if reduction is Reduction.MIN:
        return min(first, second)
    if reduction is Reduction.MAX:
        return max(first, second)
    return first + second
