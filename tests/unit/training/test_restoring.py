"""A run goes on with the configuration it is given, from a checkpoint that fits and is whole."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from corral import SFTConfig, UsageError
from corral.training.checkpoint import load_checkpoint, save_checkpoint
from corral.training.optimizers import OPTIMIZERS, make_optimizer
from corral.training.restoring import DamagedCheckpointError


def stepped(width: int = 3, **options: Any) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A layer and its optimiser after one step."""
    torch.manual_seed(0)
    model = nn.Linear(2, width)
    optimizer = make_optimizer(model, SFTConfig(**options))
    step(model, optimizer)
    return model, optimizer


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(torch.tensor([[1.0, -2.0]])).square().sum().backward()
    optimizer.step()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    model, optimizer = stepped(weight_decay=0.5)
    return save_checkpoint(tmp_path, 1, model=model, optimizer=optimizer, state={}, keep=None)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_goes_on_as_if_never_interrupted(name: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"optim": name, "learning_rate": 0.1, "weight_decay": 0.01}
    model, optimizer = stepped(**options)
    path = save_checkpoint(tmp_path, 1, model=model, optimizer=optimizer, state={}, keep=None)
    again, its_optimizer = stepped(**options)
    load_checkpoint(path, model=again, optimizer=its_optimizer)
    for one, other in ((model, optimizer), (again, its_optimizer)):
        step(one, other)
    assert torch.equal(model.weight, again.weight)
    assert torch.equal(model.bias, again.bias)


def test_the_present_settings_count_and_changes_are_told(
    saved: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model, optimizer = stepped(weight_decay=0.1, adam_beta2=0.9)
    load_checkpoint(saved, model=model, optimizer=optimizer)
    assert optimizer.param_groups[0]["weight_decay"] == 0.1
    assert optimizer.param_groups[0]["betas"] == (0.9, 0.9)
    assert "weight_decay: 0.5 -> 0.1" in caplog.text
    assert "betas: [0.9, 0.999] -> [0.9, 0.9]" in caplog.text
    caplog.clear()
    load_checkpoint(saved, model=model, optimizer=stepped(weight_decay=0.5)[1])
    assert not caplog.records


def test_another_optimizer_starts_without_moments(
    saved: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model, optimizer = stepped(optim="sgd")
    load_checkpoint(saved, model=model, optimizer=optimizer)
    assert "optimiser: AdamW -> SGD, which starts without moments" in caplog.text
    assert not optimizer.state_dict()["state"]


def test_a_checkpoint_of_another_model_is_refused_before_anything_changes(saved: Path) -> None:
    model, optimizer = stepped(width=4)
    before = model.weight.detach().clone()
    with pytest.raises(
        UsageError,
        match=r"another model \(bias is \[3\] there and \[4\] here; 2 differences in all\)",
    ):
        load_checkpoint(saved, model=model, optimizer=optimizer)
    assert torch.equal(model.weight, before)


def test_other_trained_parameters_are_another_model(saved: Path) -> None:
    model, _ = stepped()
    model.bias.requires_grad_(False)
    optimizer = make_optimizer(model, SFTConfig())
    with pytest.raises(UsageError, match="bias is trained there and not here"):
        load_checkpoint(saved, model=model, optimizer=optimizer)


def _halve(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


@pytest.mark.report("P173")
@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("damage", [_halve, Path.unlink])
def test_a_damaged_checkpoint_is_called_damaged(
    saved: Path, file: str, damage: Callable[[Path], None]
) -> None:
    model, optimizer = stepped()
    damage(saved / file)
    with pytest.raises(UsageError) as raised:
        load_checkpoint(saved, model=model, optimizer=optimizer)
    is_gone = file == "state.json" and not (saved / file).exists()
    assert isinstance(raised.value, DamagedCheckpointError) is not is_gone
    assert str(saved) in str(raised.value)


def test_a_path_without_a_checkpoint_is_told(tmp_path: Path) -> None:
    model, optimizer = stepped()
    for path, text in (
        (tmp_path / "nowhere", "does not exist"),
        (tmp_path, r"is no checkpoint \(it has no state.json\)"),
    ):
        with pytest.raises(UsageError, match=f"resume_from_checkpoint=.*{text}"):
            load_checkpoint(path, model=model, optimizer=optimizer)
