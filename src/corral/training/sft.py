"""Supervised fine-tuning on finished conversations: the warm-up before reinforcement learning.

The loss is the mean negative log-likelihood of the tokens of assistant turns, tool calls and
reasoning included, over a whole optimiser step. Conversations are laid out token for token as a
rollout lays them out, so that what is warmed up is what is played.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from corral.algorithms import MicroBatch
from corral.chat import ChatFormat
from corral.errors import UsageError
from corral.records import Sample
from corral.rollout.seeds import shuffled
from corral.track import RunFolder, Tracker
from corral.training.conversations import conversation_of, encode_conversation
from corral.training.learner import Learner
from corral.training.models import chat_format, load_model, load_tokenizer, with_adapter
from corral.training.placeholder import PLACEHOLDER
from corral.training.session import Session
from corral.training.sft_config import SFTConfig
from corral.training.state import TrainerState, TrainOutput
from corral.training.tasks import rows_of


class SFTTrainer:
    """Trains a causal language model on conversations with tools.

    Args:
        model: A folder, a hub id, or a loaded ``transformers`` model (which is trained in place).
        args: The configuration.
        train_dataset: Rows with ``messages`` (and optionally ``tools``, a list of schemas), or with
            ``prompt`` and ``completion``.
        processing_class: The tokenizer; None: the one beside the model.
        peft_config: Trains a LoRA adapter instead of the whole model.
        tracker: Receives each logged step besides the run folder's ``metrics.jsonl``.
        stage: Name of this training within its run folder.

    Raises:
        UsageError: Something does not fit together; nothing has been trained then.
    """

    def __init__(
        self,
        model: str | Path | nn.Module,
        args: SFTConfig | None = None,
        train_dataset: Any = None,
        *,
        processing_class: Any = None,
        peft_config: Any = None,
        tracker: Tracker | None = None,
        stage: str = "sft",
    ) -> None:
        self.args = args or SFTConfig()
        conversations = [conversation_of(row) for row in rows_of(train_dataset)]
        if not conversations:
            raise UsageError("train_dataset has no rows: give at least one conversation.")
        self.processing_class = load_tokenizer(model, processing_class)
        self.model = with_adapter(
            load_model(model, self.args.model_init_kwargs), peft_config, self.args.seed
        )
        self.chat = chat_format(
            self.processing_class,
            self.model,
            next((tools for _, tools in conversations if tools), []),
            self.args.chat_template_kwargs,
        )
        self.rows = [
            _sample(self.chat, messages, tools, self.args.max_length, index)
            for index, (messages, tools) in enumerate(conversations)
        ]
        self.learner = Learner(self.model, self.args)
        self.accelerator = self.learner.accelerator
        self.state = TrainerState(max_steps=self._planned_steps())
        self.learner.schedule(self.state.max_steps)
        folder = Path(self.args.output_dir or "runs/sft")
        self.session = Session(folder, stage, self.learner, self.state, tracker)

    @property
    def run_folder(self) -> RunFolder:
        """Where the run leaves its files."""
        return self.session.run_folder

    def train(self, resume_from_checkpoint: bool | str | Path | None = None) -> TrainOutput:
        """Learn until ``max_steps``; returns when the last checkpoint is written.

        Args:
            resume_from_checkpoint: A checkpoint folder, or True for the newest one of the run (or a
                fresh start if there is none). The remaining steps are those of an unbroken run.
        """
        self.session.resume(resume_from_checkpoint)
        losses: list[float] = []
        while self.state.global_step < self.state.max_steps:
            started = time.perf_counter()
            batch = self._batch(self.state.global_step)
            losses.append(self._step(batch, started))
            self.session.save_if_due(self.args.save_steps)
        self.session.finish()
        return self.state.output(losses)

    def save_model(self, path: str | Path) -> None:
        """Write model and tokenizer so that ``from_pretrained`` and another run can load them."""
        self.session.save_model(Path(path), self.processing_class, self.chat)

    def end(self) -> None:
        """Close trackers and leave the process group."""
        self.session.close()

    def _step(self, batch: list[Sample], started: float) -> float:
        total = sum(row.trained_tokens() for row in batch)
        count = torch.tensor(float(total), device=self.learner.device)
        tokens = float(self.learner.summed(count))

        def loss_of(micro: MicroBatch) -> Tensor:
            logprobs, _ = self.learner.score(micro)
            return -logprobs.sum() / tokens

        numbers = self.learner.optimizer_step(
            self.learner.micro_batches(batch or [PLACEHOLDER]), loss_of
        )
        self.state.global_step = self.learner.step
        self.state.num_tokens += sum(len(row.ids) for row in batch)
        seconds = time.perf_counter() - started
        self.session.log(
            {
                **numbers.as_metrics(),
                "num_tokens": float(self.state.num_tokens),
                "tokens_per_second": sum(len(row.ids) for row in batch) / seconds,
                "step_time": seconds,
            }
        )
        return numbers.loss

    def _batch(self, step: int) -> list[Sample]:
        """This process's rows of an optimiser step: a pure function of (data, seed, step)."""
        per_step = self._rows_per_step()
        steps = self._steps_per_epoch()
        epoch, place = divmod(step, steps)
        order: Sequence[int] = range(len(self.rows))
        if self.args.shuffle_dataset:
            order = shuffled(order, self.args.seed, "epoch", epoch)
        picked = order[place * per_step : (place + 1) * per_step]
        mine = picked[self.accelerator.process_index :: self.accelerator.num_processes]
        return [self.rows[index] for index in mine]

    def _rows_per_step(self) -> int:
        args = self.args
        per_process = args.per_device_train_batch_size * args.gradient_accumulation_steps
        return per_process * self.accelerator.num_processes

    def _steps_per_epoch(self) -> int:
        return -(-len(self.rows) // self._rows_per_step())

    def _planned_steps(self) -> int:
        if self.args.max_steps > 0:
            return self.args.max_steps
        return max(1, round(self._steps_per_epoch() * self.args.num_train_epochs))


def _sample(
    chat: ChatFormat, messages: Any, tools: Any, max_length: int | None, index: int
) -> Sample:
    row = encode_conversation(chat, messages, tools, max_length=max_length)
    return Sample(
        ids=row.ids,
        loss_mask=row.loss_mask,
        logprobs=(0.0,) * len(row.ids),
        advantage=1.0,
        version=0,
        episode=(index, 0),
    )
