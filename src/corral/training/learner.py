"""The learner: a model, its optimiser and its schedule, advanced one optimiser step at a time."""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import torch
from accelerate import Accelerator
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from corral.algorithms import (
    MicroBatch,
    Routing,
    TokenLogprobs,
    collate,
    cut,
    episode_shares,
    keeps_packed_rows_apart,
    token_logprobs,
)
from corral.errors import UsageError
from corral.records import Sample
from corral.rollout.seeds import derive
from corral.training.checkpoint import drop_checkpoints_after, load_checkpoint, save_checkpoint
from corral.training.models import disable_dropout, train_last_blocks
from corral.training.optimization import OptimizationConfig
from corral.training.optimizers import make_optimizer
from corral.training.precise_head import make_head_precise
from corral.training.processes import make_accelerator
from corral.training.schedules import rate_schedule
from corral.training.vision import reads_images
from corral.training.weights import check_weights

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNumbers:
    """What one optimiser step reports."""

    loss: float
    """Sum of the micro-batch losses, over all processes: the loss of the whole step."""
    grad_norm: float
    """Norm of the gradient before clipping."""
    learning_rate: float
    """Rate the step was made with."""

    def as_metrics(self) -> dict[str, float]:
        """The numbers under the names that trackers get."""
        return asdict(self)


class _TokenScorer(nn.Module):
    """The model as the learner runs it; its forward is what DDP and FSDP wrap."""

    def __init__(self, model: nn.Module, chunk_tokens: int) -> None:
        super().__init__()
        self.model = model
        self._chunk_tokens = chunk_tokens

    def forward(self, batch: MicroBatch, **options: Any) -> tuple[torch.Tensor | None, ...]:
        scored = token_logprobs(self.model, batch, chunk_tokens=self._chunk_tokens, **options)
        # What wraps the model for several processes looks for tensors in tuples.
        routing = scored.routing
        experts = (None, None) if routing is None else (routing.counts, routing.probabilities)
        return scored.logprobs, scored.entropies, scored.is_likeliest, *experts


class Learner:
    """Owns everything that changes when a model learns.

    The model object stays the caller's: an engine may sample from the very module that is updated
    here, which makes weight synchronisation on one machine free.
    """

    def __init__(
        self,
        model: nn.Module,
        config: OptimizationConfig,
        optimizers: tuple[Optimizer | None, LRScheduler | None] = (None, None),
    ) -> None:
        """
        Args:
            optimizers: Instead of AdamW, and instead of the configured schedule. An optimiser
                without a schedule follows the configured one from its own rates.
        """
        self.model = model
        self.config = config
        self.step = 0
        # Rows without an image leave a vision tower unused.
        self.accelerator = make_accelerator(config, skips_parts=reads_images(model))
        check_weights(model)
        if _derived(config.gradient_checkpointing, self.accelerator):
            _enable_gradient_checkpointing(model, config.gradient_checkpointing_kwargs)
        if getattr(config, "disable_dropout", False):
            disable_dropout(model)
        if getattr(config, "cast_lm_head_to_fp32", False):
            make_head_precise(model)
        if config.trained_blocks is not None:
            train_last_blocks(model, config.trained_blocks)
        scorer = _TokenScorer(model, config.logits_chunk_tokens)
        own_optimizer, self.lr_scheduler = optimizers
        optimizer = own_optimizer or make_optimizer(model, config)
        self._scorer, self._optimizer = self.accelerator.prepare(scorer, optimizer)
        self._peak_rates = [group["lr"] for group in self._optimizer.param_groups]
        self.beside: dict[str, Mapping[str, torch.Tensor]] = {}
        """By a name: tensors that change in a run besides the weights, and are saved with them."""
        self.before_update: Callable[[], None] = _nothing
        """Called with all gradients of a step in place, just before the weights change."""
        self.after_update: Callable[[], None] = _nothing
        """Called just after."""
        self._rate_factor = rate_schedule(config, max(config.max_steps, 1))
        if config.packing and not keeps_packed_rows_apart(model):
            raise UsageError(
                f"packing=True: packed rows would see each other in {type(model).__name__}. Set "
                "packing=False."
            )

    def schedule(self, steps: int) -> None:
        """Spread the learning-rate schedule over ``steps``, once their number is known."""
        self._rate_factor = rate_schedule(self.config, steps)

    @property
    def optimizer(self) -> Any:
        """The optimiser, as the accelerator wrapped it."""
        return self._optimizer

    @property
    def device(self) -> torch.device:
        """Where micro-batches must live."""
        return self.accelerator.device

    @property
    def token_budget(self) -> int:
        """How many tokens a micro-batch may have."""
        derived = 2048 if self.device.type == "cpu" else 8192
        return self.config.token_budget or derived

    def micro_batches(self, samples: Sequence[Sample]) -> list[MicroBatch]:
        """Samples of one step, cut by the token budget; every one is in exactly one micro-batch."""
        packing, shares = self.config.packing, episode_shares(samples)
        lengths = [len(sample.ids) for sample in samples]
        return [
            collate(samples, indices, packing=packing, episode_shares=shares)
            for indices in cut(lengths, self.token_budget, packing=packing)
        ]

    def score(
        self,
        batch: MicroBatch,
        *,
        temperature: float = 1.0,
        with_entropy: bool = False,
        with_numbers: bool = False,
        chosen: int | None = None,
    ) -> TokenLogprobs:
        """What :func:`token_logprobs` says of a batch, on the device and in the precision it has
        in training."""
        with self.autocast():
            logprobs, entropies, is_likeliest, counts, probabilities = self._scorer(
                batch.to(self.device),
                temperature=temperature,
                with_entropy=with_entropy,
                with_numbers=with_numbers,
                chosen=chosen,
            )
        return TokenLogprobs(
            logprobs=logprobs,
            entropies=entropies,
            is_likeliest=is_likeliest,
            routing=None if counts is None else Routing(counts=counts, probabilities=probabilities),
        )

    def autocast(self) -> AbstractContextManager[Any]:
        """Mixed precision if the configuration asks for it; else what the launcher set.

        It is not left to the accelerator, whose precision is one for all trainers of a process.
        """
        if _derived(self.config.bf16, self.accelerator):
            return torch.autocast(self.device.type, dtype=torch.bfloat16)
        return self.accelerator.autocast()

    def summed(self, values: torch.Tensor) -> torch.Tensor:
        """The sum of ``values`` over all processes."""
        # accelerate reduces nested containers as well, so its annotation promises less.
        return cast(torch.Tensor, self.accelerator.reduce(values, reduction="sum"))

    def sum_of(self, number: float) -> float:
        """The sum of a number over all processes."""
        return float(self.summed(torch.tensor(number, dtype=torch.float64, device=self.device)))

    def optimizer_step(
        self, batches: Sequence[T], loss_of: Callable[[T], torch.Tensor]
    ) -> StepNumbers:
        """Accumulate the gradients of all micro-batches and update the weights once.

        Args:
            batches: At least one micro-batch on every process.
            loss_of: The micro-batch's share of the step's loss: shares add up over micro-batches
                and processes, so the gradient does not depend on the cut.
        """
        self.model.train()
        torch.manual_seed(derive(self.config.seed, "step", self.step))
        total = torch.zeros((), device=self.device)
        for index, batch in enumerate(batches):
            is_last = index == len(batches) - 1
            with _synchronised_on(self.accelerator, self._scorer, is_last):
                loss = loss_of(batch)
                # Data-parallel wrappers average over processes; shares are to be added.
                self.accelerator.backward(loss * self.accelerator.num_processes)
            total += loss.detach()
        grad_norm = self._clip()
        rate = self._set_rate()
        self.before_update()
        if math.isfinite(grad_norm):
            self._optimizer.step()
        else:
            # One such update would destroy the weights, and the next checkpoints with them.
            logger.warning(
                "Step %d: the gradient's norm is %s, so the weights stay as they are. If this "
                "happens again, look for infinite rewards or lower learning_rate.",
                self.step + 1,
                grad_norm,
            )
        self.after_update()
        self._optimizer.zero_grad(set_to_none=True)
        return self._advance(total, grad_norm, rate)

    def skip_step(self) -> StepNumbers:
        """Pass a step in which nothing can be learned, leaving weights and moments as they are."""
        return self._advance(torch.zeros((), device=self.device), 0.0, self._set_rate())

    def save(self, folder: Path, state: dict[str, Any], describe: Callable[[Path], None]) -> None:
        """Write a checkpoint of the current step, on the main process."""
        if self.lr_scheduler is not None:
            state = state | {"lr_scheduler": self.lr_scheduler.state_dict()}
        if self.accelerator.is_main_process:
            save_checkpoint(
                folder,
                self.step,
                model=self.model,
                optimizer=self._optimizer.optimizer,
                state=state,
                keep=self.config.save_total_limit,
                beside=self.beside,
                describe=describe,
            )
        self.accelerator.wait_for_everyone()

    def start_over(self, folder: Path) -> None:
        """Forget checkpoints beyond the current step, which another course of the run left."""
        if self.accelerator.is_main_process:
            drop_checkpoints_after(folder, self.step)
        self.accelerator.wait_for_everyone()

    def load(self, checkpoint: Path) -> dict[str, Any]:
        """Continue from a checkpoint; returns the state that was saved with it."""
        optimizer = self._optimizer.optimizer
        state = load_checkpoint(
            checkpoint, model=self.model, optimizer=optimizer, beside=self.beside
        )
        self.step = state["step"]
        if self.lr_scheduler is not None:
            self.lr_scheduler.load_state_dict(state["lr_scheduler"])
        return state

    def _set_rate(self) -> float:
        groups = self._optimizer.param_groups
        if self.lr_scheduler is None:
            factor = self._rate_factor(self.step)
            for group, peak in zip(groups, self._peak_rates, strict=True):
                group["lr"] = peak * factor
        return float(groups[0]["lr"])

    def _clip(self) -> float:
        limit = self.config.max_grad_norm or float("inf")
        norm = self.accelerator.clip_grad_norm_(self._scorer.parameters(), limit)
        return float(norm) if norm is not None else 0.0

    def _advance(self, loss: torch.Tensor, grad_norm: float, rate: float) -> StepNumbers:
        self.step += 1
        if self.lr_scheduler is not None:
            self.lr_scheduler.step()
        total = float(self.summed(loss))
        return StepNumbers(loss=total, grad_norm=grad_norm, learning_rate=rate)


def _nothing() -> None:
    """What happens around an update when nobody asked for anything."""


def _derived(choice: bool | None, accelerator: Accelerator) -> bool:
    return accelerator.device.type == "cuda" if choice is None else choice


def _synchronised_on(accelerator: Accelerator, model: nn.Module, is_last: bool) -> Any:
    return nullcontext() if is_last else accelerator.no_sync(model)


def _enable_gradient_checkpointing(model: nn.Module, options: Mapping[str, Any]) -> None:
    kwargs = {"use_reentrant": False, **options}
    enable: Any = getattr(model, "activation_checkpointing_enable", None)
    if enable is not None:
        enable(activation_checkpointing_kwargs=kwargs)
    else:  # its older name, which models of other kinds have
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=kwargs)  # type: ignore[operator]
    if hasattr(model, "enable_input_require_grads"):
        model.enable_input_require_grads()  # type: ignore[operator]
