"""Where metrics go while a run is going on.

``combine`` is the boundary between tracking and training: whatever a tracker raises inside it is
reported once and never reaches the trainer.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from corral.track.run_folder import RunFolder

logger = logging.getLogger(__name__)


@runtime_checkable
class Tracker(Protocol):
    """Something that takes the metrics of a step. It may also have a ``close()``."""

    def log(self, step: int, metrics: Mapping[str, Any], stage: str) -> None:
        """Take the metrics of one step of one stage. Values are numbers, or None for unknown."""
        ...


@dataclass(frozen=True, slots=True)
class JsonlTracker:
    """Appends to ``metrics.jsonl`` of a run folder."""

    run: RunFolder

    def log(self, step: int, metrics: Mapping[str, Any], stage: str) -> None:
        """Append one line."""
        self.run.append_metrics(stage, step, metrics)


@dataclass(frozen=True, slots=True)
class MemoryTracker:
    """Keeps everything in a list: for tests and notebooks."""

    entries: list[tuple[str, int, dict[str, Any]]] = field(
        default_factory=list[tuple[str, int, dict[str, Any]]]
    )
    """(stage, step, metrics) in the order they came."""

    def log(self, step: int, metrics: Mapping[str, Any], stage: str) -> None:
        """Keep a copy."""
        self.entries.append((stage, step, dict(metrics)))

    def values(self, name: str, *, stage: str | None = None) -> list[Any]:
        """The values of one metric, in order, without the steps that lack it."""
        return [
            metrics[name]
            for logged_stage, _, metrics in self.entries
            if name in metrics and stage in (None, logged_stage)
        ]


class CombinedTracker:
    """Passes metrics on to several trackers and never raises; made by ``combine``."""

    def __init__(self, trackers: tuple[Tracker, ...]) -> None:
        self._trackers = trackers
        self._failures: dict[int, int] = {}

    def log(self, step: int, metrics: Mapping[str, Any], stage: str) -> None:
        """Give each tracker its own copy, so that none can change what the next one sees."""
        for index, tracker in enumerate(self._trackers):
            try:
                tracker.log(step, dict(metrics), stage)
            except Exception as error:  # noqa: BLE001 - tracking must not end training
                self._report(index, f"stage {stage}, step {step}", error)

    def close(self) -> None:
        """Close the trackers that can be closed, and say how many steps each one lost."""
        for index, tracker in enumerate(self._trackers):
            try:
                close = getattr(tracker, "close", None)
                if close is not None:
                    close()
            except Exception as error:  # noqa: BLE001 - tracking must not end training
                self._report(index, "close", error)
        for index, count in self._failures.items():
            logger.warning("%s failed %d times in all.", self._name(index), count)

    def __enter__(self) -> "CombinedTracker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _report(self, index: int, when: str, error: Exception) -> None:
        if index not in self._failures:
            logger.error(
                "%s failed at %s (%s: %s). Training goes on; it is tried again each step and "
                "reported once.",
                *(self._name(index), when, type(error).__name__, error),
                exc_info=error,
            )
        self._failures[index] = self._failures.get(index, 0) + 1

    def _name(self, index: int) -> str:
        return f"Tracker {type(self._trackers[index]).__name__}"


def combine(*trackers: Tracker) -> CombinedTracker:
    """One tracker of several; it never raises. Example::

    with combine(JsonlTracker(run), ProgressTracker(totals={"grpo": 50})) as tracker:
        tracker.log(1, {"reward": 0.25}, "grpo")
    """
    return CombinedTracker(trackers)
