"""The tensors of several images as one call of a model's forward takes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from corral.errors import UsageError
from corral.records import ModelImage, PlacedImage


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageBatch:
    """The images of some rows, in row order."""

    inputs: Mapping[str, Tensor]
    """By argument of the model's ``forward``."""
    is_placeholder: Tensor
    """[lines, length] bool: the tokens that stand for pixels."""

    def to(self, device: torch.device | str) -> "ImageBatch":
        """The same images on another device."""
        return replace(
            self,
            inputs={name: value.to(device) for name, value in self.inputs.items()},
            is_placeholder=self.is_placeholder.to(device),
        )


def joined(images: Sequence[ModelImage]) -> dict[str, Tensor]:
    """The images' tensors behind each other, as the processor would have made them together.

    Images that take different numbers of tiles or sizes are padded with zeros at their ends, which
    is what processors do; masks and sizes among the tensors tell the model.
    """
    return {
        name: _joined([image.inputs[name] for image in images], axis)
        for name, axis in images[0].axes.items()
    }


def image_batch(
    rows: Sequence[tuple[Sequence[int], Sequence[PlacedImage]]], width: int
) -> ImageBatch | None:
    """The images of rows (ids, images) that lie under each other; None if there are none.

    Raises:
        UsageError: A row has a placeholder without an image or too few for one: such a row cannot
            be run, and must have been left out.
    """
    images = [placed.image for _, own in rows for placed in own]
    if not images:
        return None
    is_placeholder = torch.zeros(len(rows), width, dtype=torch.bool)
    for line, (ids, own) in enumerate(rows):
        for placed in own:
            places = _placeholders(ids, placed)
            is_placeholder[line, places] = True
    return ImageBatch(inputs=joined(images), is_placeholder=is_placeholder)


def fingerprinted(ids: np.ndarray, images: Sequence[PlacedImage]) -> np.ndarray:
    """The ids, each placeholder replaced by a negative number that stands for its image.

    Two conversations with different images then differ where the images do.
    """
    marked = ids.copy()
    for placed in images:
        marked[_placeholders(ids, placed)] = -1 - int(placed.image.digest[:15], 16)
    return marked


def _placeholders(ids: Sequence[int] | np.ndarray, placed: PlacedImage) -> np.ndarray:
    """Where an image's placeholders are."""
    within = np.asarray(ids[placed.start : placed.stop])
    places = placed.start + np.flatnonzero(within == within[0]) if len(within) else within
    if len(places) != placed.image.tokens:
        raise UsageError(
            f"An image takes {placed.image.tokens} tokens, but the row has {len(places)} "
            f"placeholders at {placed.start} to {placed.stop}."
        )
    return places


def _joined(parts: Sequence[Tensor], axis: int) -> Tensor:
    if len({part.shape[:axis] + part.shape[axis + 1 :] for part in parts}) > 1:
        largest = [max(sizes) for sizes in zip(*(part.shape for part in parts), strict=True)]
        parts = [_padded(part, largest, axis) for part in parts]
    return torch.cat(list(parts), dim=axis)


def _padded(part: Tensor, largest: Sequence[int], axis: int) -> Tensor:
    missing = [
        0 if place == axis else size - own
        for place, (size, own) in enumerate(zip(largest, part.shape, strict=True))
    ]
    # torch names the last dimension first, and both of its ends.
    return functional.pad(part, [end for size in reversed(missing) for end in (0, size)])
