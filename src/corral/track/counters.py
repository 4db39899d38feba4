"""What became of a run's tokens, added up from its metrics."""

from collections.abc import Sequence

from corral.track.metrics_file import MetricLine

COUNTERS = {
    "tokens/trainable": "trainable tokens",
    "episodes/dropped": "dropped",
    "episodes/forked": "forked",
    "turns/fallback": "fallback",
    "tools/malformed": "malformed calls",
}
"""Metric and title; what each counts, ``corral.training.counters`` says."""


def totals(lines: Sequence[MetricLine]) -> dict[str, dict[str, int]]:
    """By stage and metric: the sum over all steps. Stages that count nothing are left out."""
    found: dict[str, dict[str, int]] = {}
    for line in lines:
        for name in COUNTERS:
            value = line.metrics.get(name)
            if isinstance(value, int | float):
                stage = found.setdefault(line.stage, {})
                stage[name] = stage.get(name, 0) + round(value)
    return found
