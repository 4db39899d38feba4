"""Virtual environments that the tests of this folder share, made by the command itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from corral.hosting import installed_worlds
from support import doors, doors_world
from support.gong_world import SPEC
from support.served_command import environment


@pytest.fixture(scope="session")
def home_with_gong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for ``CORRAL_HOME`` with the gong's environment in it."""
    home = shared_folder(tmp_path_factory) / "corral-home"
    made_by_command(SPEC, home)
    return home


def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A temporary folder that all workers share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base


def made_by_command(spec: str, home: Path) -> None:
    """Have the command make a world's environment, or skip the test where no package index is."""
    made = subprocess.run(
        [sys.executable, "-m", "corral.cli.main", "install", spec],
        env=environment() | {"CORRAL_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if "No matching distribution found" in made.stderr:
        pytest.skip(f"no package index can be reached: {made.stderr[-300:]}")
    assert made.returncode == 0, made.stderr


@pytest.fixture
def worlds_home(home_with_gong: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``CORRAL_HOME`` of a test that plays with the gong."""
    monkeypatch.setenv("CORRAL_HOME", str(home_with_gong))
    return home_with_gong


@pytest.fixture(scope="session")
def home_with_doors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for ``CORRAL_HOME`` in which families of worlds find one environment."""
    home = shared_folder(tmp_path_factory) / "corral-home-doors"
    made_by_command(doors_world.SPEC, home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CORRAL_HOME", str(home))
        doors.share(next(one.folder for one in installed_worlds() if one.note.world == "doors"))
    return home


@pytest.fixture
def doors_home(home_with_doors: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``CORRAL_HOME`` of a test that plays worlds of families."""
    monkeypatch.setenv("CORRAL_HOME", str(home_with_doors))
    return home_with_doors


@pytest.fixture(scope="session")
def doors_python(home_with_doors: Path) -> str:
    """The interpreter that has the packages of the families."""
    return str(next(home_with_doors.glob("worlds/doors-*")) / "bin" / "python")


@pytest.fixture(scope="session")
def home_with_verifiers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for ``CORRAL_HOME`` with verifiers, which goes together with nothing else."""
    home = shared_folder(tmp_path_factory) / "corral-home-verifiers"
    made_by_command("verifiers", home)
    return home


@pytest.fixture
def verifiers_home(home_with_verifiers: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``CORRAL_HOME`` of a test that plays environments of verifiers."""
    monkeypatch.setenv("CORRAL_HOME", str(home_with_verifiers))
    return home_with_verifiers


@pytest.fixture(scope="session")
def verifiers_python(home_with_verifiers: Path) -> str:
    """The interpreter that has verifiers."""
    return str(next(home_with_verifiers.glob("worlds/verifiers-*")) / "bin" / "python")
