"""One stage of training in its run folder: where it is, what it logs, how it resumes."""

import logging
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from accelerate.utils import broadcast_object_list

from corral.errors import StorageError, storage_boundary
from corral.track import JsonlTracker, RunFolder, Tracker, combine, set_aside, sole_writer
from corral.training.checkpoint import checkpoints, step_of
from corral.training.learner import Learner
from corral.training.restoring import DamagedCheckpointError
from corral.training.saving import HasTemplate, save_pretrained
from corral.training.state import TrainerState

logger = logging.getLogger(__name__)


Result = TypeVar("Result")
Given = ParamSpec("Given")


class HasSession(Protocol):
    """A trainer, as far as its folder goes."""

    session: "Session"


Trainer = TypeVar("Trainer", bound=HasSession)


def alone_in_its_folder(
    train: Callable[Concatenate[Trainer, Given], Result],
) -> Callable[Concatenate[Trainer, Given], Result]:
    """Let go of the run folder when a method ends that calls :meth:`Session.resume`."""

    @wraps(train)
    def until_done(trainer: Trainer, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        with trainer.session.writing:
            return train(trainer, *args, **kwargs)

    return until_done


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
        describe: Callable[[Path], None],
    ) -> None:
        self.run_folder = RunFolder(folder)
        self.stage = stage
        self.state = state
        self.writing = ExitStack()
        """Holds the run folder while a run writes there."""
        self._learner = learner
        self._describe = describe
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

        Raises:
            UsageError: Another process trains in this folder.
        """
        saved: dict[str, Any] | None = None
        if self._is_main:
            self._take_folder(is_fresh=not wanted and not self._learner.step)
        self._learner.accelerator.wait_for_everyone()
        self.run_folder.create()
        saved = self._load_newest() if wanted is True else None
        if isinstance(wanted, str | Path):
            saved = self._learner.load(Path(wanted))
        if saved is not None:
            self.state.global_step = self._learner.step
            self.state.num_tokens = saved["num_tokens"]
        with storage_boundary(self.run_folder.path):
            self._learner.start_over(self.checkpoint_folder)
        if self._is_main:
            self.run_folder.truncate_after(self.stage, self.state.global_step)
        return saved

    def _take_folder(self, *, is_fresh: bool) -> None:
        """Be the only one who writes there, in a new folder if an earlier run is in the way."""
        folder = self.run_folder.path
        self.writing.enter_context(sole_writer(self.run_folder.create().path))
        found = checkpoints(self.checkpoint_folder) if is_fresh else []
        if found:
            steps = step_of(found[-1])
            is_finished = steps >= self.state.max_steps
            logger.warning(
                "%s held %s, which is now %s. Another time, to go on with a run: "
                "train(resume_from_checkpoint=True).",
                folder,
                f"a {'finished' if is_finished else 'shorter'} run of {steps} steps",
                set_aside(folder),
            )
            self.writing.enter_context(sole_writer(self.run_folder.create().path))

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

        Raises:
            StorageError: The disk is full, or may not be written.
        """
        state = {"num_tokens": self.state.num_tokens, **(more or {})}
        try:
            self._learner.save(self.checkpoint_folder, state, self._describe)
        except StorageError as error:
            newest = self.newest_checkpoint()
            kept = f"The newest checkpoint is {newest}." if newest else "There is no checkpoint."
            raise StorageError(f"{error} {kept}") from error

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
