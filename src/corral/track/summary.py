"""The summary of a run: what was asked, what came out, with which versions, in what time."""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from corral.config.secrets import redact
from corral.errors import UsageError
from corral.track.jsonable import to_jsonable

REPORTED_PACKAGES = ("corral", "torch", "transformers", "accelerate", "peft", "vllm", "pydantic")
"""The packages that can change a result."""

_OWN_COLUMNS = frozenset({"name", "seconds"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """One row of the table that compares before and after."""

    name: str
    """Such as ``"base"``, ``"sft"``, ``"grpo"``."""
    metrics: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """By column: numbers, short texts such as ``"20/30"``, or None for unknown."""
    seconds: float | None = None
    """Wall time of the stage."""

    def __post_init__(self) -> None:
        taken = _OWN_COLUMNS & self.metrics.keys()
        if taken:
            raise UsageError(
                f"Stage {self.name!r} has a metric called {sorted(taken)[0]!r}, which is a column "
                "of its own: rename the metric."
            )

    def as_row(self) -> dict[str, Any]:
        """The flat row that stands in ``summary.json``."""
        return {"name": self.name, **self.metrics, "seconds": self.seconds}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "StageResult":
        """The result that ``as_row`` made the row of."""
        metrics = {key: value for key, value in row.items() if key not in _OWN_COLUMNS}
        return cls(name=row["name"], metrics=metrics, seconds=row.get("seconds"))


def versions() -> dict[str, str]:
    """Versions of Python, of the platform and of the installed packages that shape a result."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in REPORTED_PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def summary_text(
    *,
    asked: Mapping[str, Any],
    stages: Sequence[StageResult],
    wall_time_s: float | None,
    extra: Mapping[str, Any],
) -> str:
    """The text of ``summary.json``. Secrets in ``asked`` and ``extra`` are masked."""
    content = {
        # What most readers look for comes first.
        "stages": [stage.as_row() for stage in stages],
        "wall_time_s": wall_time_s,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "asked": redact(to_jsonable(asked), in_commands=True),
    }
    more = redact(to_jsonable(extra), in_commands=True)
    content |= {name: value for name, value in more.items() if name not in content}
    return json.dumps(to_jsonable(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
