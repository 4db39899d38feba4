"""Checkpoints: tensors and JSON only, whole or absent.

A checkpoint is written into a hidden folder and renamed when complete, so a kill at any moment
leaves the previous one untouched. Everything random in a run derives from its seed and step, so
weights, optimiser moments and the step are all there is to save.
"""

import json
import logging
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from corral.training.restoring import read_checkpoint, restore
from corral.training.saving import writing_tensors

logger = logging.getLogger(__name__)

PREFIX = "checkpoint-"
_DRAFT, _GONE = ".draft-", ".gone-"

Beside = Mapping[str, Mapping[str, Tensor]]
"""By the name of its file: tensors by name, which change in a run besides the trained weights."""


def save_checkpoint(
    folder: Path,
    step: int,
    *,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: dict[str, Any],
    keep: int | None,
    beside: Beside | None = None,
    describe: Callable[[Path], None] | None = None,
) -> Path:
    """Write checkpoint ``step`` atomically and drop all but the newest ``keep``.

    Args:
        describe: Puts into a folder what ``from_pretrained`` wants beside the weights.

    Raises:
        StorageError: The disk is full, or may not be written; the checkpoints before are still
            there, and nothing of this one is.
    """
    target, draft = folder / f"{PREFIX}{step}", folder / f"{_DRAFT}{PREFIX}{step}"
    tensors, groups = _flatten_optimizer(optimizer)
    parts = {"model": _trainable_parameters(model), **(beside or {}), "optimizer": tensors}
    described = {
        "step": step,
        "optimizer": type(optimizer).__name__,
        "optimizer_groups": groups,
        **state,
    }
    with writing_tensors(target):
        folder.mkdir(parents=True, exist_ok=True)
        _drop_leftovers(folder)
        try:
            _write_draft(draft, parts, described)
            if describe is not None:
                describe(draft)
            _flush_to_disk(draft)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        if target.exists():
            _remove(target)
        os.replace(draft, target)
        for old in checkpoints(folder)[:-keep] if keep else []:
            _remove(old)
    return target


def _write_draft(draft: Path, parts: Beside, described: Mapping[str, Any]) -> None:
    draft.mkdir()
    for name, tensors in parts.items():
        save_file(_on_cpu(tensors), draft / f"{name}.safetensors", {"format": "pt"})
    text = json.dumps(described, indent=1, default=str)
    (draft / "state.json").write_text(text, encoding="utf-8")


def load_checkpoint(
    path: Path,
    *,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    beside: Beside | None = None,
) -> dict[str, Any]:
    """Restore weights, optimiser and ``beside`` in place; returns the state saved with them.

    Raises:
        UsageError: There is no checkpoint, it is damaged, or it is of another model.
    """
    saved = read_checkpoint(path)
    changed = restore(saved, _trainable_parameters(model), optimizer, beside or {})
    if changed:
        logger.warning(
            "%s was saved with other settings; the present ones count: %s", path, "; ".join(changed)
        )
    return dict(saved.state)


def checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoints in ``folder``, oldest step first."""
    found = [
        path
        for path in folder.glob(f"{PREFIX}*")
        # A copy that somebody put beside them (checkpoint-10-best) is none of ours.
        if path.name.removeprefix(PREFIX).isdecimal() and (path / "state.json").is_file()
    ]
    return sorted(found, key=step_of)


def drop_checkpoints_after(folder: Path, step: int) -> None:
    """Remove checkpoints of later steps: a run that starts at ``step`` makes others."""
    for path in checkpoints(folder):
        if step_of(path) > step:
            _remove(path)


def step_of(path: Path) -> int:
    """The step a checkpoint was made after."""
    return int(path.name.removeprefix(PREFIX))


def _remove(path: Path) -> None:
    """Take a checkpoint away at once: one that is half deleted must not look complete."""
    gone = path.with_name(_GONE + path.name)
    os.replace(path, gone)
    shutil.rmtree(gone)


def _drop_leftovers(folder: Path) -> None:
    """Delete what killed runs left half-written or half-deleted."""
    for prefix in (_DRAFT, _GONE):
        for path in folder.glob(f"{prefix}*"):
            shutil.rmtree(path)


def _trainable_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    # Tied weights appear once: named_parameters removes duplicates.
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def _on_cpu(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().contiguous() for name, value in tensors.items()}


def _flatten_optimizer(
    optimizer: torch.optim.Optimizer,
) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    state = optimizer.state_dict()
    tensors = {
        f"{index}.{field}": torch.as_tensor(value).detach().cpu().contiguous()
        for index, fields in state["state"].items()
        for field, value in fields.items()
    }
    return tensors, state["param_groups"]


def _flush_to_disk(folder: Path) -> None:
    """Force the files out before the rename makes them count."""
    for path in filter(Path.is_file, folder.rglob("*")):
        with path.open("rb") as file:
            os.fsync(file.fileno())
