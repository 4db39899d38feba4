"""The processes of a run: how they find each other and exchange gradients."""

import os
from datetime import timedelta
from typing import Any

from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs, InitProcessGroupKwargs

from corral.errors import UsageError
from corral.training.optimization import OptimizationConfig


def make_accelerator(config: OptimizationConfig, *, skips_parts: bool = False) -> Accelerator:
    """Join the processes of the run, if there are several; cheap, and the same each time.

    Args:
        skips_parts: Some steps leave parameters of the model unused, in one process or in all.

    Raises:
        UsageError: An earlier trainer of this process uses another device, or a launcher started
            several processes that do not find each other.
    """
    handlers = [_gradients(config, skips_parts), _group(config)]
    try:
        accelerator = Accelerator(cpu=config.use_cpu, kwargs_handlers=handlers)
    except ValueError as error:
        raise UsageError(f"use_cpu={config.use_cpu}: {error}") from error
    launched = int(os.environ.get("WORLD_SIZE", "1"))
    if launched > 1 and accelerator.num_processes == 1:
        raise UsageError(
            f"The launcher started {launched} processes (WORLD_SIZE), but without an accelerator "
            "each would train alone. Set use_cpu=True to train on CPUs together, or start one."
        )
    return accelerator


def _gradients(config: OptimizationConfig, skips_parts: bool) -> DistributedDataParallelKwargs:
    looks_for_unused = config.ddp_find_unused_parameters
    # Reentrant checkpointing hides from DDP what a forward uses, so the two do not go together.
    if looks_for_unused is None and not config.gradient_checkpointing_kwargs.get("use_reentrant"):
        looks_for_unused = skips_parts
    # Buffers are constants here (rotary frequencies); to broadcast them before a forward pass would
    # hang where processes make different numbers of passes.
    given: dict[str, Any] = {
        "find_unused_parameters": looks_for_unused,
        "bucket_cap_mb": config.ddp_bucket_cap_mb,
        "static_graph": config.ddp_static_graph,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    return DistributedDataParallelKwargs(broadcast_buffers=False, **chosen)


def _group(config: OptimizationConfig) -> InitProcessGroupKwargs:
    return InitProcessGroupKwargs(
        backend=config.ddp_backend, timeout=timedelta(seconds=config.ddp_timeout)
    )
