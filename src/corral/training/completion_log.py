"""Shows and keeps the completions of a run, where ``log_completions`` asks for it."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accelerate import PartialState
from accelerate.utils import gather_object
from rich.console import Console
from transformers import TrainerCallback

from corral.errors import require
from corral.training.completions import (
    Row,
    as_text,
    completion_rows,
    first_of_each_prompt,
    print_sample,
    write_parquet,
)
from corral.training.generation import Generation
from corral.training.trackers import send_table

logger = logging.getLogger(__name__)

UPLOAD_EVERY_MINUTES = 2


class CompletionLog:
    """The completions of the newest generation, written each time that numbers are logged."""

    def __init__(self, args: Any, folder: Path) -> None:
        self._args = args
        self._folder = folder / "completions"
        self._newest: list[Row] = []
        self._uploads: Any = None
        if args.log_completions:
            require("pyarrow", extra="data")  # now, not after the first steps

    def take(self, generation: Generation, step: int) -> None:
        """Keep the completions of a generation until they are shown; all processes take part."""
        self._newest = self._gathered(generation, step)

    def show_training(self, step: int, callbacks: Sequence[TrainerCallback]) -> None:
        """Show the completions taken last."""
        self._show([{**row, "step": step} for row in self._newest], "", step, callbacks)

    def show_evaluation(
        self, generation: Generation, prefix: str, step: int, callbacks: Sequence[TrainerCallback]
    ) -> None:
        """Show those of an evaluation; all processes take part."""
        self._show(self._gathered(generation, step), f"{prefix}_", step, callbacks)

    def close(self) -> None:
        """Upload what has not been uploaded yet."""
        uploads, self._uploads = self._uploads, None
        if uploads is not None:
            uploads.trigger().result()
            uploads.stop()

    def _gathered(self, generation: Generation, step: int) -> list[Row]:
        if not self._args.log_completions:
            return []
        own = completion_rows(generation, step, with_images=self._args.log_multimodal)
        return gather_object(own)

    def _show(
        self, rows: list[Row], prefix: str, step: int, callbacks: Sequence[TrainerCallback]
    ) -> None:
        if not (rows and PartialState().is_main_process):
            return
        try:
            of = f" of {prefix.rstrip('_')}" if prefix else ""
            title = f"Step {step}: {len(rows)} completions{of}"
            at_most = self._args.num_completions_to_print
            if at_most is not None and at_most < len(rows):
                title += f", the first {at_most} shown"
            print_sample(rows, title, at_most=at_most, console=Console())
            self._start_uploads()
            write_parquet(self._folder / f"{prefix}completions_{step:05d}.parquet", rows)
            shown = first_of_each_prompt(rows) if self._args.log_unique_prompts else rows
            send_table(callbacks, as_text(shown), step, name=f"{prefix}completions")
        except Exception:
            # A full disk or a tracker that is away must not cost the training.
            logger.exception("The completions of step %d are not logged", step)

    def _start_uploads(self) -> None:
        repository = self._args.log_completions_hub_repo
        if repository is None or self._uploads is not None:
            return
        hub = require("huggingface_hub", extra="push")
        self._folder.mkdir(parents=True, exist_ok=True)
        self._uploads = hub.CommitScheduler(
            repo_id=repository,
            repo_type="dataset",
            folder_path=self._folder,
            every=UPLOAD_EVERY_MINUTES,
            allow_patterns=["*.parquet"],
            token=self._args.hub_token,
        )
