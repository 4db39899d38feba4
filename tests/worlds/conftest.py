"""Virtual environments that the tests of this folder share, made by the command itself."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.gong_world import SPEC
from support.served_command import environment

TESTS = Path(__file__).resolve().parents[1]


def run_corral(*arguments: str, timeout_s: float = 300) -> "subprocess.CompletedProcess[str]":
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "corral.cli.main", *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@pytest.fixture(scope="session")
def worlds_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """``CORRAL_HOME`` for all processes of the test run, with the gong's environment in it."""
    base = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        base = base.parent  # which all workers share
    home = base / "corral-home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CORRAL_HOME", str(home))
        made = run_corral("install", SPEC)
        if made.returncode != 0:
            pytest.skip(f"the packages cannot be installed here: {made.stderr[-300:]}")
        yield home
