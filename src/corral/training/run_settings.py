"""What a run derives from its configuration before anything is loaded."""

import os
from pathlib import Path
from typing import Any, TypeVar

from torch import nn

from corral.errors import UsageError

Config = TypeVar("Config", bound=Any)


def default_folder(model: str | Path | nn.Module, method: str) -> str:
    """Where a run goes that was given no folder."""
    name = model if isinstance(model, str | Path) else getattr(model, "name_or_path", "") or "model"
    return f"runs/{Path(name).name}-{method}"


def run_settings(args: Config, default_folder: str) -> tuple[Config, Path]:
    """The configuration with folder and name of the run filled in, and the folder.

    The given configuration stays as it is: another run may be made with it.

    Raises:
        UsageError: Nothing can be written there.
    """
    folder = Path(args.output_dir or default_folder)
    check_folder(folder)
    filled = {"output_dir": str(folder), "run_name": args.run_name or folder.name}
    if args.metric_for_best_model is not None and args.greater_is_better is None:
        filled["greater_is_better"] = not args.metric_for_best_model.endswith("loss")
    return args.model_copy(update=filled), folder


def check_folder(folder: Path) -> None:
    """Check that a run can leave its files in a folder.

    Raises:
        UsageError: It, or something above it, is a file, or may not be written.
    """
    place = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not place.is_dir():
        raise UsageError(
            f"output_dir={str(folder)!r}: {place} is a file. Give a folder, which is made if it is "
            "not there."
        )
    if not os.access(place, os.W_OK | os.X_OK):
        raise UsageError(
            f"output_dir={str(folder)!r}: {place} may not be written. Give another folder, or make "
            "that one writable."
        )


def check_stream(args: Any) -> None:
    """Check that a run over rows of unknown number knows when to end, and what to do when.

    Raises:
        UsageError: It does not.
    """
    if args.max_steps <= 0:
        raise UsageError(
            "max_steps must be set: train_dataset is a stream, whose length is not known."
        )
    for name in ("eval_strategy", "save_strategy"):
        if getattr(args, name) == "epoch":
            raise UsageError(f'{name}="epoch" with a stream, which has no epochs: use "steps".')


def check_evaluation(args: Any, eval_dataset: Any, processes: int) -> None:
    """Check that there is something to evaluate, in whole groups.

    Raises:
        UsageError: There is not.
    """
    if args.eval_strategy == "no" and not args.eval_on_start:
        return
    if eval_dataset is None:
        raise UsageError(
            f"eval_strategy={args.eval_strategy!r} needs an eval_dataset: pass one to the trainer, "
            'or set eval_strategy="no".'
        )
    members = args.num_generations_eval or args.num_generations
    at_once = args.per_device_eval_batch_size * processes
    if at_once % members:
        raise UsageError(
            f"per_device_eval_batch_size={args.per_device_eval_batch_size} on {processes} "
            f"processes is {at_once} episodes, which {members} episodes of each task "
            "(num_generations_eval, else num_generations) do not divide. Make it a multiple."
        )
