"""Processes that a launcher started and that do not find each other."""

import pytest

from corral import GRPOConfig, UsageError
from corral.training.processes import make_accelerator


def test_processes_that_would_train_alone_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert make_accelerator(GRPOConfig()).num_processes == 1
    # What torchrun sets; the accelerator of this process has been made without it.
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match=r"started 2 processes .* Set use_cpu=True"):
        make_accelerator(GRPOConfig())
