"""Virtual environments that the tests of this folder share, made by the command itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.gong_world import SPEC
from support.served_command import environment


@pytest.fixture(scope="session")
def home_with_gong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for ``CORRAL_HOME`` with the gong's environment in it."""
    base = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        base = base.parent  # which all workers share
    home = base / "corral-home"
    made = subprocess.run(
        [sys.executable, "-m", "corral.cli.main", "install", SPEC],
        env=environment() | {"CORRAL_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "No matching distribution found" in made.stderr:
        pytest.skip(f"no package index can be reached: {made.stderr[-300:]}")
    assert made.returncode == 0, made.stderr
    return home


@pytest.fixture
def worlds_home(home_with_gong: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``CORRAL_HOME`` of a test that plays with the gong."""
    monkeypatch.setenv("CORRAL_HOME", str(home_with_gong))
    return home_with_gong
