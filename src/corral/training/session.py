"""One stage of training in its run folder: where it is, what it logs, how it resumes."""

import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelerate.utils import broadcast_object_list

from corral.track import JsonlTracker, RunFolder, Tracker, combine, set_aside
from corral.training.checkpoint import checkpoints, step_of
from corral.training.learner import Learner
from corral.training.restoring import DamagedCheckpointError
from corral.training.saving import HasTemplate, save_pretrained
from corral.training.state import TrainerState

logger = logging.getLogger(__name__)


class Session:
    """Shared by all trainers; only the main process writes.

    Record a step before saving its checkpoint: a run that resumes there counts on its line.
    """

    def __init__(
        self,
        folder: Path,
        stage: str,
        learner: Learner,
        state: TrainerState,
        tracker: Tracker | None,
    ) -> None:
        self.run_folder = RunFolder(folder)
        self.stage = stage
        self.state = state
        self._learner = learner
        self._is_main = learner.accelerator.is_main_process
        self._tracker = combine(JsonlTracker(self.run_folder), *([tracker] if tracker else []))

    @property
    def checkpoint_folder(self) -> Path:
        """Where this stage keeps its checkpoints."""
        return self.run_folder.checkpoints_path / self.stage

    def record(self, metrics: Mapping[str, float]) -> None:
        """Give the numbers of the step just made to the run folder and the tracker."""
        if self._is_main:
            self._tracker.log(self.state.global_step, metrics, self.stage)

    def resume(self, wanted: bool | str | Path | None) -> dict[str, Any] | None:
        """Go to a checkpoint, or with True to the newest one; forget what came after it.

        A fresh start puts an earlier run that has checkpoints of this stage aside.

        Returns:
            What was given to :meth:`save`; None after a fresh start.
        """
        saved: dict[str, Any] | None = None
        is_fresh = not wanted and not self._learner.step
        if self._is_main and is_fresh and checkpoints(self.checkpoint_folder):
            aside = set_aside(self.run_folder.path)
            logger.warning(
                "%s holds an earlier run, which is now %s. To go on with it: "
                "train(resume_from_checkpoint=True).",
                self.run_folder.path,
                aside,
            )
        self._learner.accelerator.wait_for_everyone()
        self.run_folder.create()
        saved = self._load_newest() if wanted is True else None
        if isinstance(wanted, str | Path):
            saved = self._learner.load(Path(wanted))
        if saved is not None:
            self.state.global_step = self._learner.step
            self.state.num_tokens = saved["num_tokens"]
        self._learner.start_over(self.checkpoint_folder)
        if self._is_main:
            self.run_folder.truncate_after(self.stage, self.state.global_step)
        return saved

    def _load_newest(self) -> dict[str, Any] | None:
        """Load the newest checkpoint that is whole; None: there are none.

        Raises:
            DamagedCheckpointError: There are some, and none is whole.
        """
        found = checkpoints(self.checkpoint_folder)
        for path in reversed(found):
            try:
                return self._learner.load(path)
            except DamagedCheckpointError as error:
                if path == found[0]:
                    raise
                logger.warning("%s. The one before is taken.", error)
        return None

    def is_saved(self) -> bool:
        """Whether the present step has a checkpoint, as the main process sees it.

        Every process asks. Each looking for itself, one could find what the main process is just
        writing, or not find it on the disk of another machine; and saving waits for all.
        """
        found = self.state.global_step in map(step_of, checkpoints(self.checkpoint_folder))
        return bool(broadcast_object_list([found])[0])

    def newest_checkpoint(self) -> Path | None:
        """The folder of the newest checkpoint of this stage, if there is one."""
        return next(reversed(checkpoints(self.checkpoint_folder)), None)

    def can_save_alone(self) -> bool:
        """Whether there is something new to save, and nobody to wait for."""
        is_alone = self._learner.accelerator.num_processes == 1
        return is_alone and self.state.global_step > 0 and not self.is_saved()

    def save(self, more: Mapping[str, Any] | None = None) -> None:
        """Write a checkpoint of the present step.

        Args:
            more: JSON data that a run needs to go on from here.
        """
        state = {"num_tokens": self.state.num_tokens, **(more or {})}
        self._learner.save(self.checkpoint_folder, state)

    def copy_checkpoint(self, checkpoint: Path, target: Path) -> None:
        """Copy a checkpoint to where it is uploaded from; one that is there already is replaced."""
        if self._is_main:
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(checkpoint, target)

    def save_model(self, path: Path, tokenizer: Any, chat: HasTemplate) -> None:
        """Write the model so that it loads, and speaks, as it was trained."""
        if self._is_main:
            save_pretrained(self._learner.model, tokenizer, chat, path)

    def close(self) -> None:
        """Close the trackers and leave the process group."""
        self._tracker.close()
        self._learner.accelerator.end_training()
