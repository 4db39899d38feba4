"""What a trainer tells about itself while it runs and when it is done."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any


@dataclass(slots=True, kw_only=True)
class TrainerState:
    """Where a run is; reward functions receive it as ``trainer_state``."""

    max_steps: int
    global_step: int = 0
    """Optimiser steps made."""
    num_tokens: int = 0
    """Prompt and model tokens played so far."""
    log_history: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """One entry a logged step, as trackers got it."""

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
    metrics: dict[str, float]
    """The last logged metrics."""
