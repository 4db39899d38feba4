import subprocess
import sys
from pathlib import Path

import pytest

from corral.errors import UsageError
from corral.recipes.folders import MovedAside, fresh_folder, left_folder
from corral.track import set_aside

HOLD = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)
print("in", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("files", "what", "can_go_on"),
    [
        (["config.toml", "report.html"], "a finished run", False),
        (["config.toml", "metrics.jsonl"], "a run that was not finished", True),
        (["thesis.tex"], "something else than a run", False),
    ],
)
def test_what_is_in_the_way_is_kept_and_told(
    tmp_path: Path, files: list[str], what: str, can_go_on: bool
):
    path, told = tmp_path / "run", list[MovedAside]()
    path.mkdir()
    for name in files:
        (path / name).write_text("")
    folder, writing = fresh_folder(path, told.append)
    with writing:
        assert sorted(kept.name for kept in (tmp_path / "run.1").iterdir()) == files
        assert folder.checkpoints_path.is_dir()
    moved = MovedAside(what=what, path=path, aside=tmp_path / "run.1", can_go_on=can_go_on)
    assert told == [moved]


def test_nothing_in_the_way_is_nothing_to_tell(tmp_path: Path):
    told = list[MovedAside]()
    _, writing = fresh_folder(tmp_path / "run", told.append)
    writing.close()
    assert told == []


def test_the_present_folder_is_not_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    for place in (".", "..", str(tmp_path)):
        with pytest.raises(UsageError, match="where you are, or above it"):
            set_aside(Path(place))


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks there")
def test_two_processes_do_not_write_into_one_folder(tmp_path: Path):
    path = tmp_path / "run"
    path.mkdir()
    command = [sys.executable, "-S", "-c", HOLD, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "in\n"
        for take in (lambda: fresh_folder(path, print), lambda: left_folder(path)):
            with pytest.raises(UsageError, match="Another process is training in"):
                take()
        other.communicate()
    assert list(tmp_path.iterdir()) == [path]
    left_folder(path)[1].close()


def test_one_process_may_take_its_folder_again(tmp_path: Path):
    with left_folder(tmp_path)[1], left_folder(tmp_path)[1] as inner:
        inner.close()
