"""Trackers by name: what ``report_to`` stands for.

They are transformers' own callbacks, so that a run looks in wandb, trackio or tensorboard as one of
its trainer does: ``train/`` and ``eval/`` before the names, the configuration beside them.
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transformers import TrainerCallback
from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

from corral.errors import MissingExtraError


def tracker_callbacks(args: Any, folder: Path) -> list[TrainerCallback]:
    """A callback for each tracker of ``args.report_to``, in the order named.

    Args:
        folder: The run folder; tensorboard's files go below it unless ``args.logging_dir`` says
            otherwise.

    Raises:
        MissingExtraError: The tracker's package is not installed.
    """
    return [_callback(name, args.logging_dir or folder / name) for name in args.report_to]


def finish_trackers(callbacks: Sequence[TrainerCallback]) -> None:
    """Let go of runs that stay open when training ends: wandb's, for what follows ``train()``."""
    for callback in callbacks:
        wandb = getattr(callback, "_wandb", None)
        if wandb is not None and wandb.run is not None:
            wandb.finish()


def send_table(
    callbacks: Sequence[TrainerCallback],
    rows: Sequence[Mapping[str, Any]],
    step: int,
    *,
    name: str,
) -> None:
    """Give a table to the trackers that show tables."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    data = [[row.get(name) for name in columns] for row in rows]
    for callback in callbacks:
        for attribute in ("_wandb", "_trackio"):
            module = getattr(callback, attribute, None)
            if module is not None:
                table = module.Table(columns=columns, data=data, allow_mixed_types=True)
                module.log({name: table, "train/global_step": step})


def _callback(name: str, folder: str | Path) -> TrainerCallback:
    if find_spec(name) is None:
        raise MissingExtraError(
            f"report_to={name!r} needs a package that is not installed. Install it with: "
            f"pip install {name}"
        )
    callback = INTEGRATION_TO_CALLBACK[name]()
    if name == "tensorboard" and callback.logging_dir is None:
        callback.logging_dir = str(folder)
    return callback
