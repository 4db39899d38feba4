"""One run at a time in a run folder; what lay there before is kept, and said to be kept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from corral import SFTConfig, SFTTrainer, UsageError

fcntl = pytest.importorskip("fcntl", reason="no such locks here")
pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning:torch.*")]

ROWS = [{"text": f"{n} and {n}."} for n in range(4)]
HOLD = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)
print("in", flush=True)
sys.stdin.read()
"""


def trainer(model: Path, folder: Path, steps: int = 1) -> SFTTrainer:
    settings = SFTConfig(output_dir=str(folder), max_steps=steps, save_steps=1)
    return SFTTrainer(str(model), settings, ROWS)


def test_two_processes_do_not_train_in_one_folder(model_folder: Path, tmp_path: Path) -> None:
    ours = trainer(model_folder, tmp_path)
    pipe = subprocess.PIPE
    command = [sys.executable, "-S", "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "in\n"
        with pytest.raises(UsageError, match="Another process is training in"):
            ours.train()
        other.communicate()
    ours.train()
    free = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)  # let go of when the run has ended
    os.close(free)


def test_an_earlier_run_is_said_to_be_finished_or_not(
    model_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "run"
    trainer(model_folder, folder).train()
    trainer(model_folder, folder).train()
    assert f"{folder} held a finished run of 1 steps, which is now {folder}.1." in caplog.text
    trainer(model_folder, folder, steps=2).train()
    assert f"{folder} held a shorter run of 1 steps, which is now {folder}.2." in caplog.text
