"""Going back to a checkpoint: all of it is read and compared before anything is changed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from corral.errors import UsageError

_RATES = ("lr", "initial_lr")
"""Entries of an optimiser's group that the schedule sets, at every step."""


class DamagedCheckpointError(UsageError):
    """A checkpoint cannot be read; an older one may be whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What a checkpoint holds."""

    path: Path
    state: Mapping[str, Any]
    weights: Mapping[str, Tensor]
    """Trained parameters by name."""
    moments: Mapping[int, Mapping[str, Tensor]]
    """By place of the parameter in the optimiser: what it keeps of it."""
    beside: Mapping[str, Mapping[str, Tensor]]
    """By the name of its file: what else changes in a run."""


def read_checkpoint(path: Path) -> Saved:
    """Read a checkpoint folder.

    Raises:
        UsageError: There is no checkpoint at that path.
        DamagedCheckpointError: There is one, but not all of it.
    """
    if not (path / "state.json").is_file():
        what = "is no checkpoint (it has no state.json)" if path.exists() else "does not exist"
        raise UsageError(
            f"resume_from_checkpoint={str(path)!r} {what}. Give a folder checkpoint-N of a run, or "
            "True for the newest of this one."
        )
    try:
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        files = {file.stem: load_file(file) for file in path.glob("*.safetensors")}
        weights, tensors = files.pop("model"), files.pop("optimizer")
    except (OSError, ValueError, SafetensorError) as error:
        raise DamagedCheckpointError(f"The checkpoint {path} is damaged: {error}") from error
    except KeyError as error:
        raise DamagedCheckpointError(
            f"The checkpoint {path} is damaged: it has no {error.args[0]}.safetensors"
        ) from error
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, _, field = name.partition(".")
        moments.setdefault(int(index), {})[field] = tensor
    return Saved(path=path, state=state, weights=weights, moments=moments, beside=files)


def restore(
    saved: Saved,
    parameters: Mapping[str, nn.Parameter],
    optimizer: torch.optim.Optimizer,
    beside: Mapping[str, Mapping[str, Tensor]],
) -> list[str]:
    """Copy weights and moments in place; the optimiser's settings stay those it was made with.

    Args:
        beside: What else is restored, by the name of its file; what the checkpoint lacks of it
            stays as it is.

    Returns:
        What is configured otherwise than when the checkpoint was saved, as "name: old -> new".

    Raises:
        UsageError: The checkpoint is of another model, or of other trained parameters.
    """
    _check_fit(saved.path, saved.weights, parameters)
    for name in beside.keys() & saved.beside.keys():
        _check_fit(saved.path, saved.beside[name], beside[name])
    own = optimizer.state_dict()["param_groups"]
    kind = type(optimizer).__name__
    missing = [f"{name}: not saved, starts anew" for name in beside if name not in saved.beside]
    is_same_kind = saved.state.get("optimizer") == kind
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(saved.weights[name])
        for file in beside.keys() & saved.beside.keys():
            for name, tensor in beside[file].items():
                tensor.copy_(saved.beside[file][name])
    if not is_same_kind:
        optimizer.load_state_dict({"state": {}, "param_groups": own})
        before = saved.state.get("optimizer")
        return [f"optimiser: {before} -> {kind}, which starts without moments", *missing]
    then = saved.state["optimizer_groups"]
    groups = [
        {**new, **{name: old[name] for name in _RATES if name in old}}
        for old, new in zip(then, own, strict=True)
    ]
    optimizer.load_state_dict({"state": dict(saved.moments), "param_groups": groups})
    return [*_changes(then, own), *missing]


def _check_fit(path: Path, saved: Mapping[str, Tensor], present: Mapping[str, Tensor]) -> None:
    here, there = set(present), set(saved)
    differing = [
        f"{name} is {list(saved[name].shape)} there and {list(present[name].shape)} here"
        for name in sorted(here & there)
        if saved[name].shape != present[name].shape
    ]
    differing += [f"{name} is trained here and not there" for name in sorted(here - there)]
    differing += [f"{name} is trained there and not here" for name in sorted(there - here)]
    if differing:
        raise UsageError(
            f"The checkpoint {path} is of another model ({differing[0]}; {len(differing)} "
            "differences in all). Resume with the model, adapter and trained_blocks that the run "
            "was started with, or give another output_dir."
        )


def _changes(then: list[dict[str, Any]], now: list[dict[str, Any]]) -> list[str]:
    found: dict[str, None] = {}
    for old, new in zip(then, now, strict=True):
        for name in sorted(set(new) - {"params", *_RATES}):
            # JSON knows no tuples.
            value = list(new[name]) if isinstance(new[name], tuple) else new[name]
            if old.get(name) != value:
                found[f"{name}: {old.get(name)} -> {value}"] = None
    return list(found)
