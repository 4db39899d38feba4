"""What models that read images need besides ids: joined tensors, and positions in two dimensions.

Knows the modules of ``transformers``, neither engines nor losses; both run their models with it.
"""

from corral.vision.inputs import ImageBatch, fingerprinted, image_batch, joined
from corral.vision.positions import image_positions, rope_owner

__all__ = [
    "ImageBatch",
    "fingerprinted",
    "image_batch",
    "image_positions",
    "joined",
    "rope_owner",
]
