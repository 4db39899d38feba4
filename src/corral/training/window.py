"""The numbers of the steps since the last entry of the log."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from corral.track.counters import COUNTERS, SO_FAR

LATEST = frozenset({"grad_norm", "learning_rate", "num_tokens", *SO_FAR})
"""Not averaged: an entry has what the newest step says."""


class Window:
    """Collects the numbers of several steps until they are logged as one entry."""

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = {}
        """By name, from the steps that had it; saved with a checkpoint."""

    def add(self, metrics: Mapping[str, float]) -> None:
        """Take the numbers of one step; what is not finite counts as absent."""
        for name, value in metrics.items():
            if math.isfinite(value):
                self.values.setdefault(name, []).append(value)

    def take(self) -> dict[str, float]:
        """The entry for all steps since the last one: means, and the sums of what is counted."""
        entry = {name: _entry(name, values) for name, values in self.values.items()}
        self.values = {}
        return entry


def _entry(name: str, values: Sequence[float]) -> float:
    if name in LATEST:
        return values[-1]
    return sum(values) if name in COUNTERS else fmean(values)
