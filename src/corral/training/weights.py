"""Whether weights can be trained at all, looked at once before anything is played."""

import logging

import torch
from torch import nn

from corral.errors import UsageError

logger = logging.getLogger(__name__)

_COARSE = (torch.bfloat16, torch.float16)


def check_weights(model: nn.Module) -> None:
    """Look at every parameter once.

    Weights in 16 bits are warned about where they are trained: an update smaller than 1/256 of a
    bfloat16 weight is lost in rounding, and updates of reinforcement learning are.

    Raises:
        UsageError: A weight is NaN or infinite: whatever is computed with it is NaN.
    """
    broken = next((name for name, p in model.named_parameters() if not _is_finite(p)), None)
    if broken is not None:
        raise UsageError(
            f"The model's weight {broken} has values that are NaN or infinite, so nothing can be "
            "sampled. Load a model that is whole; a training that went wrong may have written this."
        )
    coarse = {p.dtype for p in model.parameters() if p.requires_grad and p.dtype in _COARSE}
    if coarse:
        logger.warning(
            "The trained weights are %s: small updates are lost in rounding. Load the model with "
            "dtype=torch.float32 and set bf16=True, which computes as fast.",
            str(coarse.pop()).removeprefix("torch."),
        )


@torch.no_grad()
def _is_finite(parameter: nn.Parameter) -> bool:
    if parameter.is_meta or not parameter.is_floating_point() or not parameter.numel():
        return True
    # A sum of finite numbers may overflow, so only a sum that is not finite needs a closer look.
    return bool(parameter.float().sum().isfinite()) or bool(parameter.isfinite().all())
