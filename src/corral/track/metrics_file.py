"""The append-only file of metrics: one JSON object a line.

A line exists once its newline does. A process killed while it writes leaves an incomplete last
line; readers ignore it and the next writer removes it. One process writes at a time, any number may
read meanwhile.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corral.errors import storage_boundary
from corral.track.atomic import write_atomically
from corral.track.jsonable import as_number, dumps

logger = logging.getLogger(__name__)

_TAIL_BLOCK_BYTES = 65536
"""How much is read at a time when looking backwards for the last newline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricLine:
    """What one step of one stage reported."""

    stage: str
    step: int
    time: float
    """Seconds since the epoch."""
    metrics: Mapping[str, Any]
    """Numbers by name; None where a metric has no value, which is not the same as 0."""

    def to_json(self) -> str:
        """The line as it stands in the file, without its newline."""
        return dumps(
            {"stage": self.stage, "step": self.step, "time": self.time, "metrics": self.metrics}
        )


def append_line(path: Path, line: MetricLine) -> None:
    """Add one line, after removing what a killed writer may have left half-written."""
    data = line.to_json().encode("ascii") + b"\n"
    with storage_boundary(path), path.open("a+b") as file:
        _drop_incomplete_tail(file)
        file.write(data)


def read_lines(path: Path) -> list[MetricLine]:
    """All complete lines; a missing or empty file has none."""
    return read_lines_after(path, 0)[0]


def read_lines_after(path: Path, offset: int) -> tuple[list[MetricLine], int]:
    """The complete lines after byte ``offset``, and the offset to continue from.

    Start at 0 and pass the returned offset to follow a run that is still writing. A file that
    became shorter (the run was resumed from an earlier step) is read again from its beginning.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            start = offset if offset <= size else 0
            file.seek(start)
            data = file.read()
    except FileNotFoundError:
        return [], 0
    complete = data[: data.rfind(b"\n") + 1]
    lines = [_parse(raw, path) for raw in complete.split(b"\n") if raw.strip()]
    return [line for line in lines if line is not None], start + len(complete)


def rewrite_lines(path: Path, lines: Sequence[MetricLine]) -> None:
    """Replace the file by ``lines`` in one step."""
    write_atomically(path, "".join(line.to_json() + "\n" for line in lines))


def _parse(raw: bytes, path: Path) -> MetricLine | None:
    try:
        fields = json.loads(raw)
        return MetricLine(
            stage=str(fields["stage"]),
            step=int(fields["step"]),
            time=float(fields["time"]),
            metrics={name: as_number(value) for name, value in fields["metrics"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        logger.warning("%s: skipped a damaged line (%s): %r", path, error, raw[:80])
        return None


def _drop_incomplete_tail(file: Any) -> None:
    end = file.seek(0, 2)
    keep = end
    while keep > 0:
        start = max(0, keep - _TAIL_BLOCK_BYTES)
        file.seek(start)
        newline = file.read(keep - start).rfind(b"\n")
        if newline >= 0:
            keep = start + newline + 1
            break
        keep = start
    if keep != end:
        file.truncate(keep)
