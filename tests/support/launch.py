"""Starts a module in several processes that find each other, as launchers do."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corral.serve.ports import free_port

TESTS = Path(__file__).resolve().parent.parent


def run_module(module: str, *arguments: object, processes: int, timeout_s: float) -> None:
    """Run ``python -m module arguments`` once a process to the end; any that fails is an error."""
    with started_module(module, *arguments, processes=processes) as started:
        for one in started:
            output, _ = one.communicate(timeout=timeout_s)
            assert one.returncode == 0, output[-3000:]


@contextmanager
def started_module(
    module: str, *arguments: object, processes: int
) -> Iterator[list["subprocess.Popen[str]"]]:
    """``python -m module arguments`` once a process; what has not ended by itself is killed."""
    port = free_port()
    command = [sys.executable, "-m", module, *map(str, arguments)]
    started = [_start(command, rank, processes, port) for rank in range(processes)]
    try:
        yield started
    finally:
        for one in started:
            one.kill()
            one.wait()


def _start(command: list[str], rank: int, processes: int, port: int) -> "subprocess.Popen[str]":
    launched = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": processes,
        "LOCAL_WORLD_SIZE": processes,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    # What a test run puts on the path comes first, then the support modules.
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(TESTS)]))
    variables = {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    if processes > 1:
        variables |= {name: str(value) for name, value in launched.items()}
    return subprocess.Popen(
        command,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
