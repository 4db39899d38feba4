"""Gives a request the images that its prompt has."""

from collections.abc import Sequence

import torch
from torch import nn

from corral.engines.torch_engine.requests import Request
from corral.records import PlacedImage
from corral.vision import fingerprinted, image_positions, joined, rope_owner


def show(request: Request, images: Sequence[PlacedImage], model: nn.Module) -> None:
    """Mark the placeholders of the prompt, and number its tokens as the model counts them."""
    ids = request.prompt
    request.images = tuple(images)
    request.placeholder = int(ids[images[0].start])
    request.prompt = fingerprinted(ids, images)
    owner = rope_owner(model)
    if owner is None:
        return
    positions = image_positions(
        owner,
        torch.from_numpy(ids)[None],
        torch.from_numpy(request.prompt < 0)[None],
        joined([placed.image for placed in images]),
    )[:, 0]
    request.positions = positions.numpy()
    request.rope_shift = int(positions.max()) + 1 - len(ids)
