"""Batch arithmetic of GRPO: how many episodes a generation has and how many steps it feeds."""

import math
from dataclasses import dataclass

from corral.errors import UsageError
from corral.training.grpo_config import GRPOConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """The derived sizes of a run; all are per optimiser step or per generation, over all ranks."""

    tasks: int
    """Distinct tasks of one generation."""
    members: int
    """Episodes of each task."""
    slices: int
    """Optimiser steps of one pass over a generation."""
    passes: int
    """Passes over a generation."""

    @property
    def episodes(self) -> int:
        """Episodes of one generation."""
        return self.tasks * self.members

    @property
    def steps(self) -> int:
        """Optimiser steps that one generation feeds."""
        return self.slices * self.passes

    def planned_steps(self, config: GRPOConfig, generations_per_epoch: int | None) -> int:
        """Optimiser steps of the whole run: ``max_steps``, or the epochs over the data.

        Args:
            generations_per_epoch: None where nobody knows; then ``max_steps`` is set.
        """
        if config.max_steps > 0 or generations_per_epoch is None:
            return config.max_steps
        return max(1, round(generations_per_epoch * config.num_train_epochs * self.steps))


def plan_batches(config: GRPOConfig, processes: int) -> BatchPlan:
    """Derive the sizes, or say which number does not divide which.

    Raises:
        UsageError: Groups cannot be whole, or accumulation and generation do not fit together.
    """
    rows = config.per_device_train_batch_size * processes
    accumulation = config.gradient_accumulation_steps
    per_generation = _steps_per_generation(config, rows, accumulation)
    if per_generation < accumulation and accumulation % per_generation == 0:
        # The weights stay the same between these generations, so playing them at once is the same.
        per_generation = accumulation
    if per_generation % accumulation:
        raise UsageError(
            f"steps_per_generation={per_generation} and gradient_accumulation_steps="
            f"{accumulation}: one must be a multiple of the other."
        )
    episodes = rows * per_generation
    members = config.num_generations
    if episodes % members:
        raise UsageError(
            f"A generation has {episodes} episodes (batch {config.per_device_train_batch_size} × "
            f"{processes} processes × {per_generation} steps), which num_generations={members} "
            "does not divide. Set generation_batch_size to a multiple of "
            f"{math.lcm(rows, members)}."
        )
    tasks = episodes // members
    if tasks % processes:
        raise UsageError(
            f"A generation has {tasks} groups for {processes} processes: a whole group lives on "
            f"one process, so make the generation a multiple of {members * processes} episodes."
        )
    return BatchPlan(
        tasks=tasks,
        members=members,
        slices=per_generation // accumulation,
        passes=config.num_iterations,
    )


def _steps_per_generation(config: GRPOConfig, rows: int, accumulation: int) -> int:
    if config.generation_batch_size is None:
        return config.steps_per_generation or accumulation
    if config.generation_batch_size % rows:
        raise UsageError(
            f"generation_batch_size={config.generation_batch_size} is not a multiple of the "
            f"{rows} rows that one accumulation step has over all processes."
        )
    return config.generation_batch_size // rows
