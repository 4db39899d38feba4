"""The summary of a run: what was asked, what came out, with which versions, in what time."""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from corral.config.secrets import redact
from corral.track.jsonable import to_jsonable

REPORTED_PACKAGES = ("corral", "torch", "transformers", "accelerate", "peft", "vllm", "pydantic")
"""The packages that can change a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """One row of the table that compares before and after."""

    name: str
    """Such as ``"base model"``, ``"after sft"``, ``"after grpo"``."""
    metrics: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """By column: numbers, short texts such as ``"20/30"``, or None for unknown."""
    seconds: float | None = None
    """Wall time of the stage."""


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
        **redact(to_jsonable(extra), in_commands=True),
        "asked": redact(to_jsonable(asked), in_commands=True),
        "stages": [
            {"name": stage.name, "metrics": stage.metrics, "seconds": stage.seconds}
            for stage in stages
        ],
        "versions": versions(),
        "wall_time_s": wall_time_s,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return json.dumps(to_jsonable(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
