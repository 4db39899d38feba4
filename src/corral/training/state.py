"""What a trainer tells about itself while it runs and when it is done."""

from dataclasses import dataclass, field
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOutput:
    """What ``train()`` returns."""

    global_step: int
    training_loss: float
    """Mean over the steps of this call; NaN when there were none."""
    metrics: dict[str, float]
    """The last logged metrics."""
