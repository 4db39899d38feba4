"""Two processes learn what one process learns, and neither waits for the other for ever."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from corral.serve.ports import free_port

TESTS = Path(__file__).resolve().parent.parent


def start(
    module: str, arguments: list[str], rank: int, processes: int, port: int
) -> "subprocess.Popen[str]":
    launched = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": processes,
        "LOCAL_WORLD_SIZE": processes,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    variables = {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)}
    if processes > 1:
        variables |= {name: str(value) for name, value in launched.items()}
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(out: Path, processes: int) -> dict[str, dict[str, Any]]:
    port = free_port()
    arguments = ["support.distributed_run", [str(out)]]
    started = [start(*arguments, rank, processes, port) for rank in range(processes)]
    try:
        for one in started:
            output, _ = one.communicate(timeout=240)
            assert one.returncode == 0, output[-3000:]
    finally:
        for one in started:
            one.kill()
            one.wait()
    return torch.load(out)


@pytest.mark.timeout(600)
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
    port = free_port()
    arguments = ["support.failing_process", [str(tmp_path), what]]
    started = [start(*arguments, rank, 2, port) for rank in range(2)]
    try:
        first, second = [one.communicate(timeout=240)[0] for one in started]
    finally:
        for one in started:
            one.kill()
            one.wait()
    assert all(one.returncode not in (0, -9) for one in started)
    assert told in first
    assert own in second
