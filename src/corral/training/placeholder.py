"""A row for processes that have none: it takes part in every collective and changes nothing."""

from corral.records import Sample

PLACEHOLDER = Sample(
    ids=(0,), loss_mask=(0,), logprobs=(0.0,), advantage=0.0, version=0, episode=(-1, -1)
)
"""One token that is not trained. A process that left out the backward pass would leave the others
waiting for its gradients for ever."""
