"""Servers to talk to: the official package's in a process, and scripted ones in a thread."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from corral.serve.ports import free_port

TESTS = Path(__file__).resolve().parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"}


@contextmanager
def official(world: str, *, port: int | None = None, capacity: int = 8) -> Iterator[str]:
    """The base URL of a server of the official package."""
    port = port or free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "support.client_worlds", world, str(port)],
        env=ENVIRONMENT | {"MAX_CONCURRENT_ENVS": str(capacity)},
    )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"{url}/health", timeout=2):
                    break
            except (OSError, urllib.error.URLError):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield url
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def counter() -> Iterator[str]:
    with official("counter", capacity=8) as url:
        yield url


@pytest.fixture(scope="session")
def board() -> Iterator[str]:
    with official("board") as url:
        yield url


@pytest.fixture(scope="session")
def toolbox() -> Iterator[str]:
    with official("toolbox") as url:
        yield url
