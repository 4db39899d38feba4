import json
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from corral.errors import StorageError
from corral.training import checkpoint
from corral.training.checkpoint import (
    checkpoints,
    drop_checkpoints_after,
    load_checkpoint,
    save_checkpoint,
    step_of,
)
from support.full_disk import files_of_at_most


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(3, 2)
        self.frozen = nn.Linear(2, 2).requires_grad_(False)
        self.head = nn.Linear(2, 3, bias=False)
        self.head.weight = self.embed.weight


def made(value: float) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A model whose weights are ``value``, after a step that gave the optimiser moments."""
    model = Tied()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.5)
    model.embed.weight.sum().backward()
    optimizer.step()
    with torch.no_grad():
        model.embed.weight.fill_(value)
    return model, optimizer


def save(folder: Path, step: int, *, keep: int | None = 2) -> Path:
    model, optimizer = made(float(step))
    state = {"num_tokens": 10 * step}
    return save_checkpoint(folder, step, model=model, optimizer=optimizer, state=state, keep=keep)


def load(path: Path) -> tuple[float, dict[str, Any], torch.optim.Optimizer]:
    model, optimizer = made(-1.0)
    state = load_checkpoint(path, model=model, optimizer=optimizer)
    return model.head.weight[0, 0].item(), state, optimizer


def test_everything_comes_back(tmp_path: Path) -> None:
    value, state, optimizer = load(save(tmp_path, 4))
    _, expected = made(4.0)
    assert (value, state["step"], state["num_tokens"]) == (4.0, 4, 40)
    saved, wanted = optimizer.state_dict(), expected.state_dict()
    (group,), (wanted_group,) = saved["param_groups"], wanted["param_groups"]
    assert {**group, "betas": tuple(group["betas"])} == wanted_group
    for name, tensor in wanted["state"][0].items():
        assert torch.equal(saved["state"][0][name], tensor)


@pytest.mark.report("P174")
def test_only_what_is_trained_is_saved_and_no_pickle(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    assert sorted(file.name for file in path.iterdir()) == [
        "model.safetensors",
        "optimizer.safetensors",
        "state.json",
    ]
    assert list(load_file(path / "model.safetensors")) == ["embed.weight"]


@pytest.mark.report("P173")
def test_the_newest_are_kept(tmp_path: Path) -> None:
    for step in (2, 9, 10, 11):
        save(tmp_path, step)
    assert [step_of(path) for path in checkpoints(tmp_path)] == [10, 11]
    save(tmp_path, 12, keep=None)
    assert [step_of(path) for path in checkpoints(tmp_path)] == [10, 11, 12]
    drop_checkpoints_after(tmp_path, 10)
    assert [step_of(path) for path in checkpoints(tmp_path)] == [10]


class Killed(BaseException):
    """Stands in for SIGKILL: nothing catches it."""


OPERATIONS = [
    (checkpoint, "save_file"),
    (checkpoint.os, "replace"),
    (checkpoint.os, "fsync"),
    (checkpoint.os, "unlink"),
    (checkpoint.os, "rmdir"),
    (checkpoint.json, "dumps"),
]


def kill_at(monkeypatch: pytest.MonkeyPatch, moment: int, *, is_torn: bool) -> Callable[[], int]:
    """Raise at a moment of a save; torn, the operation leaves half of its file behind first."""
    done = count()

    def killing(original: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*args: Any, **kwargs: Any) -> Any:
            if next(done) != moment:
                return original(*args, **kwargs)
            if is_torn and original is checkpoint_save_file:
                original(*args, **kwargs)
                data = args[1].read_bytes()
                args[1].write_bytes(data[: len(data) // 2])
            raise Killed

        return operation

    checkpoint_save_file = checkpoint.save_file
    for owner, name in OPERATIONS:
        monkeypatch.setattr(owner, name, killing(getattr(owner, name)))
    return lambda: next(done)


@pytest.mark.report("P169")
@pytest.mark.parametrize("is_torn", [False, True])
@pytest.mark.parametrize("moment", range(25))
def test_a_kill_at_any_moment_leaves_a_checkpoint_that_loads(
    tmp_path: Path, moment: int, is_torn: bool
) -> None:
    save(tmp_path, 1)
    save(tmp_path, 2)
    with pytest.MonkeyPatch.context() as monkeypatch:
        kill_at(monkeypatch, moment, is_torn=is_torn)
        try:
            save(tmp_path, 3)
            is_killed = False
        except Killed:
            is_killed = True
    for path in checkpoints(tmp_path):
        value, state, _ = load(path)
        assert value == state["step"] == step_of(path)
    newest = step_of(checkpoints(tmp_path)[-1])
    assert newest == 3 or (is_killed and newest == 2)
    # What the killed process left is gone after the next save.
    save(tmp_path, 4)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"checkpoint-{step}" for step in (newest, 4)
    }


def test_the_moments_reach_beyond_a_whole_save(tmp_path: Path) -> None:
    save(tmp_path, 1)
    save(tmp_path, 2)
    with pytest.MonkeyPatch.context() as monkeypatch:
        moments = kill_at(monkeypatch, -1, is_torn=False)
        save(tmp_path, 3)
        assert 10 < moments() <= 25


@pytest.mark.report("P173")
def test_a_folder_that_is_no_checkpoint_is_passed_over(tmp_path: Path) -> None:
    save(tmp_path, 1)
    (save(tmp_path, 2) / "state.json").unlink()
    (tmp_path / "checkpoint-3").mkdir()
    assert [step_of(path) for path in checkpoints(tmp_path)] == [1]
    shutil.rmtree(tmp_path / "checkpoint-1")
    assert checkpoints(tmp_path) == []
    assert checkpoints(tmp_path / "nowhere") == []


def test_the_state_is_readable_by_people(tmp_path: Path) -> None:
    state = json.loads((save(tmp_path, 5) / "state.json").read_text())
    assert state["step"] == 5
    assert state["optimizer_groups"][0]["lr"] == 0.5


def test_a_checkpoint_that_does_not_fit_leaves_nothing_and_the_one_before(tmp_path: Path) -> None:
    model, optimizer = made(1.0)
    first = save_checkpoint(tmp_path, 1, model=model, optimizer=optimizer, state={}, keep=1)
    for size in (10, 200):  # the weights do not fit, or what describes them
        with (
            files_of_at_most(size),
            pytest.raises(StorageError, match=r"checkpoint-2 cannot be written: .*File too large"),
        ):
            save_checkpoint(
                tmp_path, 2, model=model, optimizer=optimizer, state={"log": "x" * 999}, keep=1
            )
        assert list(tmp_path.iterdir()) == [first]
    assert load_checkpoint(first, model=model, optimizer=optimizer)["step"] == 1
