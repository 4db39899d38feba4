"""The processes of a run: how they find each other and exchange gradients."""

from datetime import timedelta
from typing import Any

from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs, InitProcessGroupKwargs

from corral.errors import UsageError
from corral.training.optimization import OptimizationConfig


def make_accelerator(config: OptimizationConfig) -> Accelerator:
    """Join the processes of the run, if there are several; cheap, and the same each time.

    Raises:
        UsageError: An earlier trainer of this process uses another device.
    """
    try:
        return Accelerator(cpu=config.use_cpu, kwargs_handlers=[_gradients(config), _group(config)])
    except ValueError as error:
        raise UsageError(f"use_cpu={config.use_cpu}: {error}") from error


def _gradients(config: OptimizationConfig) -> DistributedDataParallelKwargs:
    # Buffers are constants here (rotary frequencies); to broadcast them before a forward pass would
    # hang where processes make different numbers of passes.
    given: dict[str, Any] = {
        "find_unused_parameters": config.ddp_find_unused_parameters,
        "bucket_cap_mb": config.ddp_bucket_cap_mb,
        "static_graph": config.ddp_static_graph,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    return DistributedDataParallelKwargs(broadcast_buffers=False, **chosen)


def _group(config: OptimizationConfig) -> InitProcessGroupKwargs:
    return InitProcessGroupKwargs(
        backend=config.ddp_backend, timeout=timedelta(seconds=config.ddp_timeout)
    )
