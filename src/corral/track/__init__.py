"""What a run leaves behind, and what it shows while it is going on."""

from corral.track.atomic import write_atomically
from corral.track.episodes import SavedEpisode, read_episodes, write_episodes
from corral.track.metrics_file import MetricLine
from corral.track.progress import ProgressTracker
from corral.track.report import render_report, write_report
from corral.track.run_folder import EpisodeFile, RunFolder, check_can_be_set_aside, set_aside
from corral.track.sole_writer import sole_writer
from corral.track.summary import StageResult, versions
from corral.track.tracker import (
    CombinedTracker,
    JsonlTracker,
    MemoryTracker,
    Tracker,
    combine,
)

__all__ = [
    "CombinedTracker",
    "EpisodeFile",
    "JsonlTracker",
    "MemoryTracker",
    "MetricLine",
    "ProgressTracker",
    "RunFolder",
    "SavedEpisode",
    "StageResult",
    "Tracker",
    "check_can_be_set_aside",
    "combine",
    "read_episodes",
    "render_report",
    "set_aside",
    "sole_writer",
    "versions",
    "write_atomically",
    "write_episodes",
    "write_report",
]
