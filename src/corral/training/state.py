"""What a trainer tells about itself while it runs and when it is done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import transformers


@dataclass
class TrainerState(transformers.TrainerState):
    """Where a run is; callbacks get it, and reward functions as ``trainer_state``.

    It is transformers' own, so that callbacks written for its trainer find what they look for:
    ``global_step``, ``epoch``, ``max_steps``, ``log_history``, ``best_metric``,
    ``is_world_process_zero``.
    """

    num_tokens: int = 0
    """Prompt and model tokens played so far."""

    def output(self, losses: Sequence[float]) -> "TrainOutput":
        """What ``train()`` returns after steps with these losses."""
        last = self.log_history[-1] if self.log_history else {}
        mean = fmean(losses) if losses else float("nan")
        return TrainOutput(global_step=self.global_step, training_loss=mean, metrics=dict(last))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOutput:
    """What ``train()`` returns."""

    global_step: int
    training_loss: float
    """Mean over the steps of this call; NaN when there were none."""
    metrics: Mapping[str, Any]
    """The last entry of ``trainer.state.log_history``: the summary of the run."""
