"""What happens around the steps of a run: callbacks, the log, evaluations, checkpoints.

Trainers say where they are (``begin``, ``step_begins``, ``step_ends``, ``between_generations``,
``end``); callbacks of transformers are told, and what they ask for through ``control`` is done.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import Any, Protocol

from transformers import DefaultFlowCallback, TrainerCallback, TrainerControl
from transformers.trainer_callback import CallbackHandler, ExportableState

from corral.errors import UsageError
from corral.training.counters import where_saved
from corral.training.learner import Learner
from corral.training.session import Session
from corral.training.state import TrainerState, TrainOutput
from corral.training.window import Window

logger = logging.getLogger(__name__)

Callback = TrainerCallback | type[TrainerCallback]


class Listener(Protocol):
    """The trainer, as the loop needs it."""

    def evaluate(self) -> Mapping[str, float]:
        """Evaluate and report through :meth:`Loop.evaluated`."""
        ...

    def saved(self) -> None:
        """A checkpoint of the present step was written."""
        ...

    def logged(self) -> None:
        """An entry of training steps was added to the log."""
        ...


class Loop:
    """The surroundings of one trainer's steps; see the module."""

    def __init__(
        self,
        args: Any,
        state: TrainerState,
        session: Session,
        learner: Learner,
        listener: Listener,
        *,
        callbacks: Sequence[Callback],
        processing_class: Any,
        steps_per_epoch: int,
    ) -> None:
        self.control = TrainerControl()
        self.callback_handler = CallbackHandler(
            [DefaultFlowCallback, *callbacks],
            learner.model,
            processing_class,
            learner.optimizer,
            learner.lr_scheduler,
        )
        self._args = args
        self._state = state
        self._session = session
        self._listener = listener
        self._steps_per_epoch = steps_per_epoch
        self._window = Window()
        self._losses: list[float] = []
        self._is_save_due = False
        self._started = 0.0
        state.is_world_process_zero = learner.accelerator.is_main_process
        state.is_local_process_zero = learner.accelerator.is_local_main_process
        learner.before_update = lambda: self.tell("on_pre_optimizer_step")
        learner.after_update = lambda: self.tell("on_optimizer_step")
        self.tell("on_init_end")

    def begin(self, *, evaluates_first: bool) -> None:
        """The run starts, or goes on from a checkpoint."""
        self._state.compute_steps(self._args, self._state.max_steps)
        if self._args.eval_steps is None:
            self._state.eval_steps = self._state.logging_steps
        self._started, self._losses = time.perf_counter(), []
        self.control.should_training_stop = False
        self.tell("on_train_begin")
        if evaluates_first:
            self._listener.evaluate()

    def goes_on(self) -> bool:
        """Whether there is another step to make."""
        is_left = self._state.global_step < self._state.max_steps
        return is_left and not self.control.should_training_stop

    def step_begins(self) -> None:
        """An optimiser step is about to be made."""
        if self._state.global_step % self._steps_per_epoch == 0:
            self.tell("on_epoch_begin")
        self.tell("on_step_begin")

    def step_ends(self, metrics: Mapping[str, float]) -> None:
        """A step was made and counted: log it, and do what callbacks ask for.

        Args:
            metrics: What the step reports, its ``loss`` among it.
        """
        self._state.epoch = self._state.global_step / self._steps_per_epoch
        self._losses.append(metrics["loss"])
        self._window.add(metrics)
        self._session.record(metrics)
        self.tell("on_step_end")
        self._do_what_is_asked()
        if self._state.global_step % self._steps_per_epoch == 0 or not self.goes_on():
            self.tell("on_epoch_end")
            self._do_what_is_asked()
        if self.control.should_epoch_stop:
            logger.warning(
                "A callback set control.should_epoch_stop, which has no effect here: which tasks a "
                "step plays follows from its number. Use control.should_training_stop."
            )
            self.control.should_epoch_stop = False

    def between_generations(self) -> None:
        """Save if that is due: what a generation is made of is not in a checkpoint."""
        if self._is_save_due:
            self.save()

    def end(self) -> TrainOutput:
        """The last step was made: save it, log the summary, tell callbacks.

        Steps that were not logged yet are logged with the summary.
        """
        self.save_last()
        seconds = time.perf_counter() - self._started
        steps = len(self._losses)
        loss = fmean(self._losses) if self._losses else float("nan")
        rest = self._window.take()
        self.log(
            {
                **rest,
                "train_runtime": seconds,
                "train_samples_per_second": steps * self._samples_per_step() / seconds,
                "train_steps_per_second": steps / seconds,
                "train_loss": loss,
            }
        )
        if rest:
            self._listener.logged()
        self.tell("on_train_end")
        return self._state.output(self._losses)

    @contextmanager
    def keeping_what_is_new(self) -> Iterator[None]:
        """Save the steps since the last checkpoint if something between two steps goes wrong."""
        try:
            yield
        except BaseException:
            # With several processes only this one may have failed, and saving waits for all.
            if self._args.save_strategy != "no" and self._session.can_save_alone():
                self._session.save({"loop": self._to_save()})
                logger.warning("%s", where_saved(self._session.newest_checkpoint()))
            raise

    def save_last(self) -> None:
        """Make sure that the present step has a checkpoint, unless none are wanted."""
        if self._args.save_strategy != "no" and not self._session.is_saved():
            self.save()

    def save(self) -> None:
        """Write a checkpoint of the present step and tell callbacks."""
        self._is_save_due = False
        self._session.save({"loop": self._to_save()})
        self._listener.saved()
        self.tell("on_save")

    def log(self, numbers: Mapping[str, Any]) -> None:
        """Add an entry to ``state.log_history`` and give it to callbacks, trackers among them."""
        entry = {**numbers, "epoch": self._state.epoch}
        self._state.log_history.append({**entry, "step": self._state.global_step})
        self.tell("on_log", logs=entry)

    def evaluated(self, metrics: Mapping[str, float]) -> None:
        """An evaluation was made: log it, remember whether it is the best, tell callbacks."""
        self._session.record(metrics)
        self.log(metrics)
        self.tell("on_evaluate", metrics=dict(metrics))

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Go on from what :meth:`save` wrote."""
        self._window.values = {name: list(values) for name, values in saved["window"].items()}
        for name, value in saved["state"].items():
            setattr(self._state, name, value)
        for name, attributes in saved["callbacks"]:
            found = [each for each in self._exportable() if type(each).__name__ == name]
            for each in found[:1]:
                vars(each).update(attributes)

    def _do_what_is_asked(self) -> None:
        self._is_save_due = self._is_save_due or self.control.should_save
        if self.control.should_log:
            self.log(self._window.take())
            self._listener.logged()
        if self.control.should_evaluate:
            with self.keeping_what_is_new():
                self._remember_best(self._listener.evaluate())

    def _remember_best(self, metrics: Mapping[str, float]) -> None:
        name = self._args.metric_for_best_model
        if name is None:
            return
        name = name if name.startswith("eval_") else f"eval_{name}"
        if name not in metrics:
            raise UsageError(
                f"metric_for_best_model={name!r} is not among the evaluation's metrics: "
                f"{', '.join(sorted(metrics))}."
            )
        best, value = self._state.best_metric, metrics[name]
        sign = 1 if self._args.greater_is_better else -1
        if best is None or sign * value > sign * best:
            self._state.best_metric = value
            self._state.best_global_step = self._state.global_step

    def _to_save(self) -> dict[str, Any]:
        names = ("epoch", "log_history", "best_metric", "best_global_step")
        return {
            "window": self._window.values,
            "state": {name: getattr(self._state, name) for name in names},
            "callbacks": [
                (type(each).__name__, each.state()["attributes"]) for each in self._exportable()
            ],
        }

    def _exportable(self) -> list[ExportableState]:
        return [
            each for each in self.callback_handler.callbacks if isinstance(each, ExportableState)
        ]

    def _samples_per_step(self) -> int:
        return self._args.per_device_train_batch_size * self._args.gradient_accumulation_steps

    def tell(self, event: str, **details: Any) -> None:
        """Call a method of all callbacks, in order."""
        call: Callable[..., Any] = getattr(self.callback_handler, event)
        self.control = call(self._args, self._state, self.control, **details)
