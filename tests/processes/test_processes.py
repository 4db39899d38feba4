"""Two processes learn what one process learns, and neither waits for the other for ever."""

from pathlib import Path
from typing import Any

import pytest
import torch

from support.launch import run_module, started_module


def run(out: Path, processes: int) -> dict[str, dict[str, Any]]:
    run_module("support.distributed_run", out, processes=processes, timeout_s=240)
    return torch.load(out)


@pytest.mark.timeout(600)
@pytest.mark.report("P047", "P059")
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


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("what", "own", "told"),
    [
        ("reward", "no reward here", "Process 1: UsageError: Reward function"),
        ("reset", "no world here", "Process 1: EnvironmentFault: All 4 episodes failed"),
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
