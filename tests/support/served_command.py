"""``corral serve`` as a user starts it: in a process of its own, until the block ends."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


def environment() -> dict[str, str]:
    """The variables of this process, with the programs of this installation first."""
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": programs, "OMP_NUM_THREADS": "1"}


@contextmanager
def serving(
    command: Sequence[str],
    port: int,
    *,
    folder: Path | None = None,
    ready_within_s: float = 60.0,
) -> Iterator[str]:
    """Run a command that serves at ``port``; gives the URL once it is healthy."""
    process = subprocess.Popen(command, cwd=folder, env=environment())
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + ready_within_s
    try:
        while not is_healthy(url):
            assert process.poll() is None, f"{command} ended at once"
            assert time.monotonic() < deadline, f"{command} did not become ready"
            time.sleep(0.05)
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        status = process.wait(timeout=30)
    assert status in (0, 130, -signal.SIGINT), f"{command} ended with {status}"


def is_healthy(url: str) -> bool:
    """Whether something at ``url`` says that it is well."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=1):
            return True
    except OSError:
        return False
