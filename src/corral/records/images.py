"""Images as a model's forward takes them, and where they stand among the tokens."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelImage:
    """One image, processed for one model; equal images of a run are one object."""

    digest: str
    """SHA-256 of size and pixels, in hexadecimal: what tells images apart."""
    picture: Any
    """The ``PIL.Image.Image`` it was made from, in RGB; its file's name in a saved episode."""
    tokens: int
    """How many placeholder tokens stand for it."""
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Tensors by the argument of the model's ``forward``, such as ``pixel_values``."""
    axes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Along which axis each of ``inputs`` is joined with those of other images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedImage:
    """An image among the ids of a span, a row or a prompt."""

    image: ModelImage
    start: int
    """Place of its first placeholder."""
    stop: int
    """One past its last. Between the two other tokens may stand, such as marks of tiles."""

    def moved(self, by: int) -> "PlacedImage":
        """The same image where ``by`` more ids precede it."""
        return replace(self, start=self.start + by, stop=self.stop + by)


def is_picture(value: object) -> bool:
    """Whether this is a ``PIL`` image; PIL is not imported to find out."""
    kinds = type(value).__mro__
    return any((kind.__module__, kind.__name__) == ("PIL.Image", "Image") for kind in kinds)


def is_image_block(value: object) -> bool:
    """Whether this is a content block that stands for an image."""
    if not isinstance(value, Mapping):
        return False
    return cast("Mapping[str, Any]", value).get("type") in ("image", "image_url")


def picture_digest(picture: Any) -> str:
    """What tells a ``PIL`` picture from others: SHA-256 of its mode, size and pixels."""
    head = f"{picture.mode} {picture.size[0]}x{picture.size[1]} ".encode()
    return hashlib.sha256(head + picture.tobytes()).hexdigest()
