"""What trainers offer besides training, under the names of transformers' trainer."""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from torch import nn
from torch.optim.lr_scheduler import LRScheduler
from transformers import TrainerControl
from transformers.trainer_callback import CallbackHandler

from corral.chat import ChatFormat
from corral.track import RunFolder, Tracker, write_atomically
from corral.training.hub import HubUploads
from corral.training.learner import Learner
from corral.training.loop import Callback, Loop
from corral.training.model_card import model_card
from corral.training.saving import describe_checkpoint
from corral.training.session import Session
from corral.training.state import TrainerState
from corral.training.trackers import finish_trackers, tracker_callbacks

logger = logging.getLogger(__name__)


class Trainer(ABC):
    """Callbacks, the log, the Hub: what does not depend on how a model is trained."""

    METHOD = ""
    """What the model card calls it."""

    args: Any
    model: nn.Module
    processing_class: Any
    chat: ChatFormat
    state: TrainerState
    session: Session
    accelerator: Accelerator
    loop: Loop
    hub: HubUploads
    learner: Learner
    base_model: str | None

    def _make_ready(
        self,
        model: str | Path | nn.Module,
        folder: Path,
        learner: Learner,
        *,
        stage: str,
        tracker: Tracker | None,
        callbacks: Sequence[Callback] | None,
        steps_per_epoch: int,
    ) -> None:
        """The last of the set-up: what surrounds the steps of a run."""
        describe = partial(describe_checkpoint, learner.model, self.processing_class, self.chat)
        self.session = Session(folder, stage, learner, self.state, tracker, describe)
        self.hub = HubUploads(self.args, folder.name)
        self.base_model = None if isinstance(model, nn.Module) else str(model)
        self.loop = Loop(
            self.args,
            self.state,
            self.session,
            learner,
            self,
            callbacks=[*tracker_callbacks(self.args, folder), *(callbacks or ())],
            processing_class=self.processing_class,
            steps_per_epoch=steps_per_epoch,
        )

    @abstractmethod
    def evaluate(self, eval_dataset: Any = None) -> dict[str, float]:
        """Measure the model on data, log and return the numbers."""

    @abstractmethod
    def logged(self) -> None:
        """An entry of training steps was added to the log."""

    @property
    def run_folder(self) -> RunFolder:
        """Where the run leaves its files."""
        return self.session.run_folder

    @property
    def optimizer(self) -> Any:
        """The optimiser, as the accelerator wrapped it."""
        return self.learner.optimizer

    @property
    def lr_scheduler(self) -> LRScheduler | None:
        """The schedule that was given; None where ``lr_scheduler_type`` says it."""
        return self.learner.lr_scheduler

    @property
    def callback_handler(self) -> CallbackHandler:
        """Whom events are told to, and in which order."""
        return self.loop.callback_handler

    @property
    def control(self) -> TrainerControl:
        """What callbacks ask for."""
        return self.loop.control

    def add_callback(self, callback: Callback) -> None:
        """Add a callback: an object or its class."""
        self.callback_handler.add_callback(callback)

    def pop_callback(self, callback: Callback) -> Any:
        """Remove a callback (the first of its class) and return it; None if there is none."""
        return self.callback_handler.pop_callback(callback)

    def remove_callback(self, callback: Callback) -> None:
        """Remove a callback: the object, or the first of its class."""
        self.callback_handler.remove_callback(callback)

    def log(self, logs: Mapping[str, Any]) -> None:
        """Add an entry to ``state.log_history`` and give it to callbacks and trackers."""
        self.loop.log(logs)

    def log_metrics(self, split: str, metrics: Mapping[str, Any]) -> None:
        """Log metrics of a split, such as what ``train()`` or ``evaluate()`` returned."""
        logger.info("%s metrics: %s", split, json.dumps(dict(metrics), default=str, indent=1))

    def save_metrics(self, split: str, metrics: Mapping[str, Any]) -> None:
        """Write metrics to ``<split>_results.json`` in the run folder."""
        if self.is_world_process_zero():
            text = json.dumps(dict(metrics), default=str, indent=1)
            write_atomically(self.run_folder.path / f"{split}_results.json", text)

    def save_state(self) -> None:
        """Write ``state`` to ``trainer_state.json`` in the run folder."""
        if self.is_world_process_zero():
            self.state.save_to_json(str(self.run_folder.path / "trainer_state.json"))

    def is_world_process_zero(self) -> bool:
        """Whether this is the process that writes."""
        return self.accelerator.is_main_process

    def is_local_process_zero(self) -> bool:
        """Whether this is the first process of its machine."""
        return self.accelerator.is_local_main_process

    def save_model(self, output_dir: str | Path | None = None) -> None:
        """Write model and tokenizer so that ``from_pretrained`` and another run can load them.

        Args:
            output_dir: The folder; None: the run folder.
        """
        path = Path(output_dir) if output_dir is not None else self.run_folder.path
        self.session.save_model(path, self.processing_class, self.chat)

    def create_model_card(
        self,
        model_name: str | None = None,
        dataset_name: str | None = None,
        tags: str | list[str] | None = None,
    ) -> None:
        """Write a model card into the run folder."""
        if self.is_world_process_zero():
            path = self.run_folder.create().path / "README.md"
            write_atomically(path, self._card(model_name, dataset_name, tags))

    def push_to_hub(
        self,
        commit_message: str = "End of training",
        blocking: bool = True,
        token: str | None = None,
        revision: str | None = None,
        private: bool | None = None,
        *,
        model_name: str | None = None,
        dataset_name: str | None = None,
        tags: str | list[str] | None = None,
    ) -> Any:
        """Upload model, tokenizer and a model card; nothing else of the run leaves the machine.

        Returns:
            The commit (its future with ``blocking=False``) on the main process, None on others.

        Raises:
            huggingface_hub.errors.HfHubHTTPError: The Hub refuses.
        """
        self.loop.tell("on_push_begin")
        if not self.is_world_process_zero():
            return None
        return self.hub.upload(
            lambda: self._write_for_hub(model_name, dataset_name, tags),
            message=commit_message,
            blocking=blocking,
            token=token,
            revision=revision,
            private=private,
        )

    def end(self) -> None:
        """Finish uploads and trackers, and leave the process group."""
        self.hub.wait()
        finish_trackers(self.callback_handler.callbacks)
        self.session.close()

    def saved(self) -> None:
        """A checkpoint was written: upload, if that is asked for."""
        if not (self.args.push_to_hub and self.is_world_process_zero()):
            return
        if self.args.hub_strategy != "end":
            self.hub.upload_beside_training(
                self._write_for_hub, message=f"Step {self.state.global_step}"
            )

    def _push_at_end(self) -> None:
        if not self.args.push_to_hub:
            return
        try:
            self.push_to_hub()
        except Exception:
            # The run is on the disk; it must not look as if it had failed.
            logger.exception("The model is not uploaded. Call trainer.push_to_hub() to try again.")

    def _write_for_hub(
        self,
        model_name: str | None = None,
        dataset_name: str | None = None,
        tags: str | list[str] | None = None,
    ) -> Path:
        folder = self.run_folder.path / "hub"
        self.session.save_model(folder, self.processing_class, self.chat)
        write_atomically(folder / "README.md", self._card(model_name, dataset_name, tags))
        checkpoint = self.session.checkpoint_folder / f"checkpoint-{self.state.global_step}"
        if self.args.hub_strategy in ("checkpoint", "all_checkpoints") and checkpoint.is_dir():
            is_one = self.args.hub_strategy == "checkpoint"
            self.session.copy_checkpoint(
                checkpoint, folder / ("last-checkpoint" if is_one else checkpoint.name)
            )
        return folder

    def _card(self, name: str | None, dataset: str | None, tags: str | list[str] | None) -> str:
        return model_card(
            name or (self.args.hub_model_id or self.run_folder.path.name).split("/")[-1],
            method=self.METHOD,
            base_model=self.base_model,
            dataset=dataset,
            tags=[tags] if isinstance(tags, str) else tags or (),
        )
