"""Two processes learn what one process learns, and neither waits for the other for ever."""

from pathlib import Path
from typing import Any

import pytest
import torch

from corral.track import RunFolder
from corral.training.counters import PATIENCE
from support.launch import run_module, started_module


def run(out: Path, processes: int) -> dict[str, dict[str, Any]]:
    run_module("support.distributed_run", out, processes=processes, timeout_s=240)
    return torch.load(out)


@pytest.mark.timeout(600)
@pytest.mark.report("P047", "P059", "P154", "P178")
def test_two_processes_learn_what_one_learns(tmp_path: Path) -> None:
    alone, together = run(tmp_path / "alone.pt", 1), run(tmp_path / "together.pt", 2)
    assert list(alone) == list(together)
    for name, expected in alone.items():
        found = together[name]
        # Adam divides by the square root of tiny second moments, which blows rounding up.
        torch.testing.assert_close(found["weights"], expected["weights"], rtol=0, atol=2e-5)
        assert found["losses"] == pytest.approx(expected["losses"], rel=1e-4, abs=1e-6), name
        assert found["norms"] == pytest.approx(expected["norms"], rel=1e-4), name
        assert found["metrics"] == pytest.approx(expected["metrics"], rel=1e-4, abs=1e-6), name
    # Only the second process ever logs this.
    assert together["grpo"]["odd"] == 1.0


@pytest.mark.report("P137")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("what", "own", "told"),
    [
        ("reward", "no reward here", "Process 1: UsageError: Reward function"),
        ("evaluation", "no reward here", "Process 1: UsageError: Reward function"),
    ],
)
def test_a_process_that_fails_alone_ends_all(
    tmp_path: Path, what: str, own: str, told: str
) -> None:
    with started_module("support.failing_process", tmp_path, what, processes=2) as started:
        first, second = [one.communicate(timeout=240)[0] for one in started]
    assert all(one.returncode not in (0, -9) for one in started)
    assert told in first
    assert own in second


@pytest.mark.timeout(600)
def test_a_process_without_an_episode_learns_from_those_of_the_other(tmp_path: Path) -> None:
    with started_module("support.failing_process", tmp_path, "reset", processes=2) as started:
        outputs = [one.communicate(timeout=240)[0] for one in started]
    assert [one.returncode for one in started] == [0, 0], outputs
    lines = [line.metrics for line in RunFolder(tmp_path).read_metrics("grpo")]
    assert len([line for line in lines if line.get("tokens/trainable", 0) > 0]) == 4
    assert "4 of 4 episodes leave their groups" in outputs[1]


@pytest.mark.timeout(600)
def test_processes_without_any_episode_stop_together_and_keep_their_steps(tmp_path: Path) -> None:
    with started_module("support.failing_process", tmp_path, "every reset", processes=2) as started:
        outputs = [one.communicate(timeout=240)[0] for one in started]
    assert all(one.returncode not in (0, -9) for one in started)
    saved = tmp_path / "checkpoints" / "grpo" / f"checkpoint-{PATIENCE}"
    assert saved.is_dir()
    for output in outputs:
        assert f"EnvironmentFault: No episode could be played in {PATIENCE} generations" in output
        assert str(saved) in output
        assert "The latest: train_dataset[" in output
