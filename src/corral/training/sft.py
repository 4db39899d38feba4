"""Supervised fine-tuning on finished texts: the warm-up before reinforcement learning.

The loss is the mean negative log-likelihood of the trained tokens of a whole optimiser step,
however it is cut. What is trained of a row, ``token_rows`` says; with ``assistant_only_loss``
conversations are laid out token for token as a rollout lays them out, so that what is warmed up is
what is played.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from corral.errors import UsageError
from corral.records import Sample
from corral.track import Tracker
from corral.training.counters import PATIENCE, where_saved
from corral.training.data_files import RowStream, open_rows
from corral.training.expert_balance import AUX_LOSS, ExpertBalance
from corral.training.image_proof import prove_learner
from corral.training.learner import Learner
from corral.training.loop import Callback
from corral.training.models import (
    load_model,
    load_processing_class,
    whole_renderer,
    with_adapter,
)
from corral.training.processes import make_accelerator
from corral.training.row_tally import RowTally
from corral.training.run_settings import check_stream, run_settings
from corral.training.session import alone_in_its_folder
from corral.training.sft_batches import batches_of, sample_of
from corral.training.sft_config import SFTConfig
from corral.training.sft_evaluation import evaluate, evaluation_sets
from corral.training.sft_loss import TextLoss
from corral.training.special_tokens import prepared, stop_at_eos, tokenizer_of
from corral.training.state import TrainerState, TrainOutput
from corral.training.token_rows import RowEncoder
from corral.training.trainer import Trainer


class SFTTrainer(Trainer):
    """Trains a causal language model on conversations with tools, prompts and completions, or text.

    Example::

        trainer = SFTTrainer(
            "path-or-hub-id",
            args=SFTConfig(output_dir="runs/warm", assistant_only_loss=True),
            train_dataset="games.jsonl",
        )
        trainer.train()

    Args:
        model: A folder, a hub id, or a loaded ``transformers`` model (which is trained in place).
        args: The configuration.
        train_dataset: Rows with ``messages`` (and optionally ``tools``), with ``prompt`` and
            ``completion``, with ``text``, or with ``input_ids``: a list of dicts, a map-style
            dataset, an iterable one (with ``max_steps``), or where one is: a .jsonl, .parquet or
            .csv file, a folder of such files, a hub id.
        eval_dataset: The same, or several by name; see ``eval_strategy``.
        processing_class: The tokenizer, or the processor of a model that reads images; None: what
            lies beside the model.
        peft_config: Trains a LoRA adapter instead of the whole model.
        formatting_func: Makes the text of a row that has none.
        callbacks: Callbacks of transformers, objects or classes; see ``corral.training.loop``.
        optimizers: An optimiser and a schedule instead of the configured ones.
        tracker: Receives each logged step besides the run folder's ``metrics.jsonl``.
        stage: Name of this training within its run folder.

    Raises:
        UsageError: Something does not fit together; nothing has been trained then.
    """

    METHOD = "SFT"

    def __init__(
        self,
        model: str | Path | nn.Module,
        args: SFTConfig | None = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        *,
        processing_class: Any = None,
        peft_config: Any = None,
        formatting_func: Callable[[Mapping[str, Any]], str] | None = None,
        callbacks: Sequence[Callback] | None = None,
        optimizers: tuple[Optimizer | None, LRScheduler | None] = (None, None),
        tracker: Tracker | None = None,
        stage: str = "sft",
    ) -> None:
        args, folder = run_settings(args or SFTConfig(), "runs/sft")
        self.args = args
        check_options(args, eval_dataset, formatting_func)
        # Before the model is loaded: data that cannot be read should not take minutes.
        rows = open_rows(train_dataset)
        if isinstance(rows, RowStream):
            check_stream(args)
        given = load_processing_class(
            model, processing_class, trust_remote_code=args.trust_remote_code
        )
        self.processing_class = prepared(given, args)
        loaded = load_model(model, args.loading_kwargs())
        self.model = with_adapter(loaded, peft_config, args.seed)
        if args.eos_token is not None:
            stop_at_eos(loaded, tokenizer_of(self.processing_class))
        self.encoder = RowEncoder(self.processing_class, self.model, args, formatting_func)
        self.chat: Any = self.encoder  # saving a model asks it for the template, and no more
        per_process = args.per_device_train_batch_size * args.gradient_accumulation_steps
        per_step = per_process * make_accelerator(args).num_processes
        self.tally = RowTally()
        self.batches = batches_of(rows, self.encoder, args, per_step=per_step, tally=self.tally)
        self._barren = 0
        """Steps in a row without a token to learn."""
        self.evaluation = evaluation_sets(eval_dataset, self.encoder, args)
        is_packed = args.packing or args.padding_free
        layout = args.model_copy(update={"packing": is_packed})
        self.learner = Learner(self.model, layout, optimizers)
        self.accelerator = self.learner.accelerator
        self.balance = ExpertBalance.of(self.model, args.router_aux_loss_coef)
        self._prove_images()
        self.state = TrainerState(max_steps=self._planned_steps())
        self.learner.schedule(self.state.max_steps)
        self._make_ready(
            model,
            folder,
            self.learner,
            stage=stage,
            tracker=tracker,
            callbacks=callbacks,
            steps_per_epoch=self.batches.steps_per_epoch or self.state.max_steps,
        )

    @alone_in_its_folder
    def train(self, resume_from_checkpoint: bool | str | Path | None = None) -> TrainOutput:
        """Learn until ``max_steps``; returns when the last checkpoint is written.

        Args:
            resume_from_checkpoint: A checkpoint folder, or True for the newest one of the run (or a
                fresh start if there is none). The remaining steps are those of an unbroken run.
        """
        saved = self.session.resume(resume_from_checkpoint)
        if saved is not None:
            self.loop.resume(saved["loop"])
        self.loop.begin(evaluates_first=self.args.eval_on_start)
        while self.loop.goes_on():
            with self.loop.keeping_what_is_new():
                rows = self._rows(self.state.global_step)
            self.loop.step_begins()
            self.loop.step_ends(self._step(rows))
            self.loop.between_generations()
            if self._barren >= PATIENCE:
                self.loop.save_last()
                raise self._has_nothing_to_learn()
        output = self.loop.end()
        self._push_at_end()
        return output

    def logged(self) -> None:
        """An entry was added to the log; there is nothing to show with it."""

    def evaluate(self, eval_dataset: Any = None) -> dict[str, float]:
        """Loss, entropy and accuracy on ``eval_dataset`` (or another one), logged and returned."""
        sets = self.evaluation
        if eval_dataset is not None:
            sets = evaluation_sets(eval_dataset, self.encoder, self.args)
        if not sets:
            raise UsageError("There is nothing to evaluate on: give eval_dataset.")
        metrics = evaluate(self.learner, sets, self.args, self.balance)
        self.loop.evaluated(metrics)
        return metrics

    def _rows(self, step: int) -> list[Sample]:
        """This process's rows of an optimiser step: a pure function of (data, seed, step)."""
        share = slice(self.accelerator.process_index, None, self.accelerator.num_processes)
        mine = self.batches.step(step, share)
        return [sample_of(row, place) for place, block in enumerate(mine) for row in block]

    def _step(self, rows: list[Sample]) -> dict[str, float]:
        started = time.perf_counter()
        loss = TextLoss(self.learner, rows, self.args.loss_type, self.balance)
        step = self.learner.optimizer_step(loss.batches, loss)
        numbers = loss.numbers()
        self.state.global_step = self.learner.step
        tokens = self._count(rows)
        self.state.num_tokens += tokens
        self._barren = 0 if numbers.tokens else self._barren + 1
        seconds = time.perf_counter() - started
        return {
            **step.as_metrics(),
            **({} if self.balance is None else {AUX_LOSS: numbers.aux_loss}),
            "entropy": numbers.entropy,
            "mean_token_accuracy": numbers.mean_token_accuracy,
            "num_tokens": float(self.state.num_tokens),
            "tokens/trainable": numbers.tokens,
            **self.tally.as_metrics(),
            "tokens_per_second": tokens / seconds,
            "step_time": seconds,
        }

    def _count(self, rows: list[Sample]) -> int:
        """Tokens of these rows and of those of the other processes."""
        own = sum(len(row.ids) for row in rows)
        return round(self.learner.sum_of(own))

    def _has_nothing_to_learn(self) -> UsageError:
        dropped, truncated = len(self.tally.dropped), len(self.tally.truncated)
        return UsageError(
            f"{PATIENCE} steps in a row had no token to learn, so the run stops. "
            f"{where_saved(self.session.newest_checkpoint())} Of the rows read so far {dropped} "
            f"have none and {truncated} were cut at max_length={self.args.max_length}: raise it, "
            "or see what their labels, masks or assistant messages leave to learn."
        )

    def _prove_images(self) -> None:
        """See that the model reads images in training as it does by itself, before it starts."""
        # A stream may still bring images.
        is_text = isinstance(getattr(self.batches, "blocks", None), list)
        if self.encoder.images is not None and not is_text:
            options = self.args.chat_template_kwargs
            renderer = whole_renderer(self.processing_class, self.model, options, needs_tools=False)
            prove_learner(self.model, renderer)

    def _planned_steps(self) -> int:
        if self.args.max_steps > 0:
            return self.args.max_steps
        per_epoch = self.batches.steps_per_epoch
        assert per_epoch is not None  # a stream has max_steps
        return max(1, math.ceil(per_epoch * self.args.num_train_epochs))


def check_options(args: SFTConfig, eval_dataset: Any, formatting_func: Any) -> None:
    """Check that what a configuration asks for goes with the other arguments.

    Raises:
        UsageError: There is nothing to evaluate on, or no completion that could be told apart.
    """
    if (args.eval_strategy != "no" or args.eval_on_start) and eval_dataset is None:
        raise UsageError(
            f"eval_strategy={args.eval_strategy!r} needs an eval_dataset: pass one to the trainer, "
            'or set eval_strategy="no".'
        )
    if formatting_func is not None and args.completion_only_loss:
        raise UsageError(
            "completion_only_loss=True with a formatting_func, which makes one text of a row: "
            "leave one of them out."
        )
