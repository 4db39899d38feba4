"""Trackers by name: what ``report_to`` stands for.

They are transformers' own callbacks, so that a run looks in wandb, trackio or tensorboard as one of
its trainer does: ``train/`` and ``eval/`` before the names, the configuration beside them.
"""

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from accelerate import PartialState
from transformers import TrainerCallback
from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

from corral.errors import MissingExtraError, UsageError, require

_STAYS_HERE = ("offline", "dryrun", "disabled")
"""Modes of wandb in which nothing is sent."""


def tracker_callbacks(args: Any, folder: Path) -> list[TrainerCallback]:
    """A callback for each tracker of ``args.report_to``, in the order named.

    Args:
        folder: The run folder; tensorboard's files go below it unless ``args.logging_dir`` says
            otherwise.

    Raises:
        MissingExtraError: The tracker's package is not installed.
        UsageError: It sends what it gets to a server that does not know who that is.
    """
    check_trackers(args)
    return [_callback(name, args, folder / name) for name in args.report_to]


def check_trackers(args: Any) -> None:
    """Check that each tracker of ``args.report_to`` is installed, and may send.

    Raises:
        MissingExtraError: Its package is not installed.
        UsageError: It sends what it gets to a server that does not know who that is.
    """
    for name in args.report_to:
        if find_spec(name) is None:
            raise MissingExtraError(
                f"report_to={name!r} needs a package that is not installed. Install it with: "
                f"pip install {name}"
            )
        if PartialState().is_main_process:
            _check_login(name, args)


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


def _callback(name: str, args: Any, folder: Path) -> TrainerCallback:
    callback = INTEGRATION_TO_CALLBACK[name]()
    if name == "tensorboard" and callback.logging_dir is None:
        callback.logging_dir = str(args.logging_dir or folder)
    return callback


def _check_login(name: str, args: Any) -> None:
    """See now, not at the first step, that a tracker may send."""
    if name == "wandb":
        _check_wandb()
    place = args.trackio_space_id or args.trackio_bucket_id
    if name == "trackio" and place and require("huggingface_hub", extra="push").get_token() is None:
        raise UsageError(
            f"report_to='trackio' sends to {place!r} on the hub, where nobody is logged in: run "
            "`hf auth login`, set HF_TOKEN, or leave trackio_space_id and trackio_bucket_id out."
        )


def _check_wandb() -> None:
    wandb: Any = import_module("wandb")
    mode = os.environ.get("WANDB_MODE") or wandb.setup().settings.mode
    if wandb.run is not None or mode in _STAYS_HERE:
        return
    try:
        wandb.login()  # asks for the key where there is a terminal
    except wandb.errors.Error as error:
        reason = str(error).strip().rstrip(".")
        raise UsageError(
            f"report_to='wandb': {reason}. Run `wandb login` or set WANDB_API_KEY; with "
            "WANDB_MODE=offline the run stays here and can be sent later (`wandb sync`)."
        ) from error
