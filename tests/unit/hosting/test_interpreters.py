import sys
from pathlib import Path

import pytest

from corral.errors import UsageError
from corral.hosting.interpreters import find_python


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without other Pythons; its programs are in ``bin``, pyenv's in ``pyenv``."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path


def program(place: Path, says: str) -> str:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\n{says}\n")
    place.chmod(0o755)
    return str(place)


def test_the_running_python_is_taken_where_it_will_do():
    running = sys.version_info[:2]
    assert find_python(None, None, needed_by="it") == sys.executable
    assert find_python(running, running, needed_by="it") == sys.executable


def test_the_oldest_that_will_do_is_taken_from_the_path(nowhere: Path):
    program(nowhere / "bin" / "python3.29", "echo 3 29")
    right = program(nowhere / "bin" / "python3.28", "echo 3 28")
    program(nowhere / "bin" / "python3.27", "echo 3 27")
    assert find_python((3, 28), None, needed_by="it") == right


def test_a_shim_that_does_not_run_is_passed_over_for_the_version_behind_it(nowhere: Path):
    program(nowhere / "bin" / "python3.28", "echo 'command not found' >&2; exit 127")
    program(nowhere / "pyenv/versions/3.2/bin/python", "echo 3 2")
    right = program(nowhere / "pyenv/versions/3.28.1/bin/python", "echo 3 28")
    assert find_python((3, 28), None, needed_by="it") == right


def test_one_that_is_too_new_will_not_do(nowhere: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "version_info", (3, 40, 0))
    right = program(nowhere / "bin" / "python3.12", "echo 3 12")
    assert find_python(None, (3, 12), needed_by="it") == right
    (nowhere / "bin" / "python3.12").unlink()
    with pytest.raises(UsageError, match=r"Python 3\.11 to 3\.12\..*pyenv install 3\.12"):
        find_python(None, (3, 12), needed_by="it")


def test_without_one_the_error_names_the_world_the_version_and_the_remedy(nowhere: Path):
    with pytest.raises(
        UsageError, match=r"it needs Python 3\.28 or newer\. .* pyenv install 3\.28"
    ):
        find_python((3, 28), None, needed_by="it")
