import logging
import subprocess
import sys

import pytest

from corral.track import JsonlTracker, MemoryTracker, RunFolder, Tracker, combine


class Broken:
    def log(self, step, metrics, stage):
        metrics["reward"] = "spoiled"
        raise OSError("disk full")

    def close(self):
        raise RuntimeError("still broken")


def test_metrics_reach_every_tracker(run: RunFolder):
    memory = MemoryTracker()
    with combine(JsonlTracker(run), memory) as tracker:
        tracker.log(1, {"reward": 0.5}, "grpo")
        tracker.log(2, {"loss": 1.0}, "sft")
    assert [line.metrics for line in run.read_metrics()] == [{"reward": 0.5}, {"loss": 1.0}]
    assert memory.entries == [("grpo", 1, {"reward": 0.5}), ("sft", 2, {"loss": 1.0})]
    assert memory.values("reward") == [0.5]
    assert memory.values("loss", stage="grpo") == []


@pytest.mark.report("P182")
def test_a_broken_tracker_is_reported_once_and_stops_nothing(caplog):
    memory = MemoryTracker()
    with caplog.at_level(logging.WARNING), combine(Broken(), memory) as tracker:
        for step in range(3):
            tracker.log(step, {"reward": 0.5}, "grpo")
    assert memory.values("reward") == [0.5, 0.5, 0.5]
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "Broken" in errors[0].getMessage()
    assert "disk full" in errors[0].getMessage()
    assert "failed 4 times" in caplog.text


def test_all_trackers_keep_the_contract(run: RunFolder):
    trackers = (JsonlTracker(run), MemoryTracker(), combine())
    assert all(isinstance(tracker, Tracker) for tracker in trackers)


def test_importing_the_package_needs_no_torch_and_leaves_logging_alone():
    script = (
        "import logging, sys; before = list(logging.root.handlers);"
        "import corral.track, corral.config;"
        "assert logging.root.handlers == before;"
        "heavy = {'torch', 'transformers', 'matplotlib', 'numpy'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
