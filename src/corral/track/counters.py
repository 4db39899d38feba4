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

SO_FAR = {"rows/dropped": "rows without a token to learn", "rows/truncated": "rows cut"}
"""The same for what is counted since the start; see ``corral.training.row_tally``."""


def totals(lines: Sequence[MetricLine]) -> dict[str, dict[str, int]]:
    """By stage and metric: the sum over all steps, or the newest number of what is counted since
    the start. Stages that count nothing are left out."""
    found: dict[str, dict[str, int]] = {}
    for line in lines:
        for name in [*COUNTERS, *SO_FAR]:
            value = line.metrics.get(name)
            if isinstance(value, int | float):
                stage = found.setdefault(line.stage, {})
                before = stage.get(name, 0) if name in COUNTERS else 0
                stage[name] = before + round(value)
    return found
