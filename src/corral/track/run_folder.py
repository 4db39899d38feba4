"""The folder a run leaves behind.

::

    runs/<name>/
      config.toml                             what was resolved, and where each value came from
      metrics.jsonl                           one line a step: stage, step, time, metrics
      episodes/<stage>-<step>.jsonl.zst       every token, mask, logprob, reward part and timing
      checkpoints/                            written by the trainer
      summary.json                            what was asked, what came out, versions, wall time
      report.html                             self-contained: curves, tables, sample episodes
"""

import json
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from corral.errors import UsageError, storage_boundary
from corral.records import Episode
from corral.track.atomic import write_atomically
from corral.track.counters import totals
from corral.track.episodes import SavedEpisode, read_episodes, write_episodes
from corral.track.metrics_file import (
    MetricLine,
    append_line,
    read_lines,
    read_lines_after,
    rewrite_lines,
)
from corral.track.summary import StageResult, summary_text

_STAGE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_EPISODE_FILE = re.compile(r"(?P<stage>.+)-(?P<step>\d+)\.jsonl\.zst")
_STEP_DIGITS = 6
"""Steps are padded in file names so that a listing is in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeFile:
    """One file of episodes."""

    stage: str
    step: int
    path: Path

    def read(self) -> Iterator[SavedEpisode]:
        """Its episodes, in the order they were written."""
        return read_episodes(self.path)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Reads and writes the files of one run. Making the object touches nothing on disk.

    One process writes (rank 0); any number may read while it does. Example::

        run = RunFolder(Path("runs/guess")).create()
        run.append_metrics("grpo", 1, {"reward": 0.25})
        run.write_episodes("grpo", 1, episodes)
        run.read_metrics()[0].metrics["reward"]      # 0.25
    """

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))

    @property
    def config_path(self) -> Path:
        """The resolved configuration."""
        return self.path / "config.toml"

    @property
    def metrics_path(self) -> Path:
        """The metrics, one line a step."""
        return self.path / "metrics.jsonl"

    @property
    def episodes_path(self) -> Path:
        """The folder of episode files."""
        return self.path / "episodes"

    @property
    def checkpoints_path(self) -> Path:
        """The folder the trainer keeps its checkpoints in."""
        return self.path / "checkpoints"

    @property
    def summary_path(self) -> Path:
        """What was asked and what came out."""
        return self.path / "summary.json"

    @property
    def report_path(self) -> Path:
        """The page that shows all of it."""
        return self.path / "report.html"

    def create(self) -> "RunFolder":
        """Make the folder and its subfolders if they are not there, and return self.

        Raises:
            StorageError: The disk may not be written.
        """
        with storage_boundary(self.path):
            for folder in (self.path, self.episodes_path, self.checkpoints_path):
                folder.mkdir(parents=True, exist_ok=True)
        return self

    def exists(self) -> bool:
        """Whether a run has left anything here."""
        return self.metrics_path.exists() or self.config_path.exists()

    def write_config(self, text: str) -> None:
        """Save the resolved configuration, TOML text as ``corral.config.dump`` makes it."""
        write_atomically(self.config_path, text)

    def append_metrics(
        self, stage: str, step: int, metrics: Mapping[str, Any], *, time_s: float | None = None
    ) -> None:
        """Add the line of one step.

        Log a step before saving its checkpoint: a run that resumes there counts on its line.

        Args:
            time_s: Seconds since the epoch; now by default.
        """
        now = time.time() if time_s is None else time_s
        line = MetricLine(
            stage=_checked_stage(stage), step=int(step), time=round(now, 3), metrics=metrics
        )
        append_line(self.metrics_path, line)

    def read_metrics(self, stage: str | None = None) -> list[MetricLine]:
        """All complete lines, or those of one stage."""
        lines = read_lines(self.metrics_path)
        return lines if stage is None else [line for line in lines if line.stage == stage]

    def read_metrics_after(self, offset: int) -> tuple[list[MetricLine], int]:
        """The lines after byte ``offset`` and the next offset: follows a run that still writes."""
        return read_lines_after(self.metrics_path, offset)

    def write_episodes(
        self,
        stage: str,
        step: int,
        episodes: Sequence[Episode],
        *,
        advantages: Sequence[float | None] | None = None,
    ) -> Path:
        """Save the episodes of one step, replacing any saved for it before."""
        name = f"{_checked_stage(stage)}-{int(step):0{_STEP_DIGITS}d}.jsonl.zst"
        path = self.episodes_path / name
        write_episodes(path, episodes, advantages=advantages)
        return path

    def episode_files(self, stage: str | None = None) -> list[EpisodeFile]:
        """The episode files, of one stage or of all, in order of stage name and step."""
        found: list[EpisodeFile] = []
        for path in self.episodes_path.glob("*.jsonl.zst"):
            match = _EPISODE_FILE.fullmatch(path.name)
            if match is None or path.name.startswith("."):
                continue
            if stage is None or match["stage"] == stage:
                found.append(EpisodeFile(stage=match["stage"], step=int(match["step"]), path=path))
        return sorted(found, key=lambda file: (file.stage, file.step))

    def write_summary(
        self,
        *,
        asked: Mapping[str, Any],
        stages: Sequence[StageResult] = (),
        wall_time_s: float | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Save what was asked, what came out of each stage, versions, wall time and counters.

        Secrets in ``asked`` are masked. The counters are those of the metrics so far, by stage.
        """
        counted = {"counters": totals(self.read_metrics()), **(extra or {})}
        text = summary_text(asked=asked, stages=stages, wall_time_s=wall_time_s, extra=counted)
        write_atomically(self.summary_path, text)

    def read_summary(self) -> dict[str, Any] | None:
        """The summary, or None while the run has not written one."""
        try:
            return json.loads(self.summary_path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None

    def truncate_after(self, stage: str, step: int, *, later_stages: Collection[str] = ()) -> None:
        """Forget what happened after ``step`` of ``stage``, for a run that resumes there.

        Dropped are the metric lines from the first one of ``stage`` beyond ``step`` onwards,
        whatever their stage, because they tell of weights that no longer exist; all lines of
        ``later_stages``; and the episode files that go with them. The resumed run then leaves the
        same files as one that was never interrupted. Safe to repeat, and safe to be killed in.
        """
        lines = self.read_metrics()
        kept: list[MetricLine] = []
        is_undone = False
        for line in lines:
            is_undone = is_undone or (line.stage == stage and line.step > step)
            if not is_undone and line.stage not in later_stages:
                kept.append(line)
        dropped = {(line.stage, line.step) for line in lines}
        dropped -= {(line.stage, line.step) for line in kept}
        # Episodes first: if this is killed half-way, the lines still say what is to be dropped.
        for file in self.episode_files():
            is_beyond = file.stage == stage and file.step > step
            if is_beyond or file.stage in later_stages or (file.stage, file.step) in dropped:
                file.path.unlink(missing_ok=True)
        if self.metrics_path.exists():
            rewrite_lines(self.metrics_path, kept)


def _checked_stage(stage: str) -> str:
    if not _STAGE_NAME.fullmatch(stage):
        raise UsageError(
            f"stage={stage!r} cannot be part of a file name: use letters, digits, '.', '_' and '-'."
        )
    return stage


def set_aside(path: Path) -> Path | None:
    """Rename what is at ``path`` to the first free ``<path>.N``; returns the new name.

    Raises:
        UsageError: It is the present folder, or has it within: other things than a run are there.
    """
    if not path.exists():
        return None
    check_can_be_set_aside(path)
    candidates = (path.with_name(f"{path.name}.{number}") for number in count(1))
    free = next(candidate for candidate in candidates if not candidate.exists())
    with storage_boundary(path):
        path.rename(free)
    return free


def check_can_be_set_aside(path: Path) -> None:
    """Check that what is at ``path`` may be renamed.

    Raises:
        UsageError: It is the present folder, or has it within: other things than a run are there.
    """
    here = Path.cwd()
    if path.resolve() in (here, *here.parents):
        raise UsageError(
            f"The run folder {str(path)!r} is where you are, or above it, and would be renamed: "
            "give it a folder of its own, such as runs/NAME."
        )
