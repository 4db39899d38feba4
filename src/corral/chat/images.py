"""Reads images for a multimodal model: pixels for its forward, placeholders for its tokens.

A chat template writes one placeholder for an image. The processor of ``transformers`` knows how
many tokens it really takes and which tensors the model wants; it is asked about each image alone,
so that history never has to be rendered, or processed, again.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from corral.chat.pictures import pictures_of
from corral.chat.tokenizer import encode
from corral.errors import ImageError, TemplateError, require
from corral.records import Message, ModelImage, PlacedImage
from corral.records.images import picture_digest

_KEPT = 64
"""How many processed images are remembered: those of a group's prompt are the same."""

_NOT_FOR_IMAGES = ("input_ids", "attention_mask", "mm_token_type_ids", "token_type_ids")
"""What a processor says about the text."""


class Encoded(NamedTuple):
    """Text as ids, with the images that stand among them."""

    ids: list[int]
    images: tuple[PlacedImage, ...] = ()


class _Read(NamedTuple):
    image: ModelImage
    expansion: str
    """What the processor writes in place of the placeholder."""


@dataclass(slots=True, eq=False)
class ImageReader:
    """Reads images with one processor of ``transformers``."""

    processor: Any
    token: str
    """The placeholder, as chat templates write it."""
    token_id: int
    axes: dict[str, int]
    """Along which axis the processor joins the tensors of several images."""
    _read: OrderedDict[str, _Read] = field(default_factory=OrderedDict[str, _Read])

    @classmethod
    def of(cls, processor: Any) -> "ImageReader":
        """The reader of a processor, which must have an image processor and a placeholder.

        Raises:
            TemplateError: It has no placeholder token.
        """
        token = getattr(processor, "image_token", None)
        token = None if token is None else str(token)
        ids = encode(processor.tokenizer, token) if token else []
        if token is None or len(ids) != 1:
            raise TemplateError(
                f"{type(processor).__name__} has image_token={token!r}, which is no single token: "
                "give the AutoProcessor of a model that reads images."
            )
        reader = cls(processor=processor, token=token, token_id=ids[0], axes={})
        reader.axes = _axes(reader)
        return reader

    def encode(self, text: str, messages: Sequence[Message]) -> Encoded:
        """Rendered ``messages`` as ids, each placeholder expanded for its image.

        Raises:
            ImageError: The processor cannot read an image.
            TemplateError: The template does not show the images.
        """
        pictures, found = pictures_of(messages), text.count(self.token)
        if found != len(pictures):
            roles = ", ".join(message["role"] for message in messages)
            raise TemplateError(
                f"The chat template writes {found} placeholders {self.token!r} for {len(pictures)} "
                f"images in messages with roles [{roles}]: use a template that shows images in all "
                "of them."
            )
        return self.encode_text(text, pictures)

    def encode_text(self, text: str, pictures: Sequence[Any]) -> Encoded:
        """Text as ids, each placeholder in it expanded for its picture.

        Raises:
            ImageError: There are more or fewer placeholders, or the processor cannot read one.
        """
        pieces = text.split(self.token)
        if len(pieces) - 1 != len(pictures):
            raise ImageError(
                f"A text has {len(pieces) - 1} placeholders {self.token!r} for {len(pictures)} "
                "images: give as many images as it has placeholders."
            )
        read = [self._of(picture) for picture in pictures]
        whole = pieces[0] + "".join(
            one.expansion + piece for one, piece in zip(read, pieces[1:], strict=True)
        )
        ids = encode(self.processor.tokenizer, whole)
        return Encoded(ids, self._placed(ids, [one.image for one in read]))

    def find(self, ids: Sequence[int], pictures: Sequence[Any]) -> tuple[PlacedImage, ...]:
        """Where pictures stand among ids that somebody else made of a text with them.

        Raises:
            ImageError: There are more or fewer placeholders than the pictures take.
        """
        return self._placed(ids, [self._of(picture).image for picture in pictures])

    def inputs(self, pictures: Sequence[Any], text: str) -> dict[str, Any]:
        """What the processor itself makes of a text and its pictures, as torch tensors."""
        made = self.processor(
            images=list(pictures), text=[text], return_tensors="pt", add_special_tokens=False
        )
        return dict(made)

    def _of(self, picture: Any) -> _Read:
        digest = picture_digest(picture)
        known = self._read.get(digest)
        if known is not None:
            self._read.move_to_end(digest)
            return known
        try:
            made = self.inputs([picture], self.token)
        except (ValueError, TypeError, RuntimeError) as error:
            # Some processors refuse pictures of extreme shapes.
            size = "x".join(map(str, picture.size))
            raise ImageError(
                f"{type(self.processor).__name__} cannot read an image of {size} pixels: {error}"
            ) from error
        ids = [int(token) for token in made["input_ids"][0]]
        image = ModelImage(
            digest=digest,
            picture=picture,
            tokens=ids.count(self.token_id),
            inputs={name: made[name] for name in made if name not in _NOT_FOR_IMAGES},
            axes=self.axes,
        )
        read = self._read[digest] = _Read(image, self._text(ids))
        while len(self._read) > _KEPT:
            self._read.popitem(last=False)
        return read

    def _text(self, ids: list[int]) -> str:
        tokenizer = self.processor.tokenizer
        text = str(
            tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        )
        if encode(tokenizer, text) != ids:
            raise TemplateError(
                f"What {type(self.processor).__name__} writes for an image is not read back as the "
                f"same tokens: {text[:80]!r}."
            )
        return text

    def _placed(self, ids: Sequence[int], images: Sequence[ModelImage]) -> tuple[PlacedImage, ...]:
        places = [place for place, token in enumerate(ids) if token == self.token_id]
        if len(places) != sum(image.tokens for image in images):
            raise ImageError(
                f"{len(images)} images should take {sum(image.tokens for image in images)} tokens "
                f"{self.token!r}, but the text has {len(places)}."
            )
        placed: list[PlacedImage] = []
        for image in images:
            own, places = places[: image.tokens], places[image.tokens :]
            placed.append(PlacedImage(image=image, start=own[0], stop=own[-1] + 1))
        return tuple(placed)


def _axes(reader: ImageReader) -> dict[str, int]:
    """Look along which axis the processor joins what it makes of two equal pictures."""
    picture = require("PIL.Image", extra="vision").new("RGB", (56, 56), (90, 120, 150))
    one = reader.inputs([picture], reader.token)
    two = reader.inputs([picture, picture], reader.token * 2)
    axes: dict[str, int] = {}
    for name in one:
        if name in _NOT_FOR_IMAGES:
            continue
        shapes = list(zip(one[name].shape, two[name].shape, strict=True))
        grown = [axis for axis, (single, double) in enumerate(shapes) if double != single]
        if len(grown) != 1 or shapes[grown[0]][1] != 2 * shapes[grown[0]][0]:
            raise TemplateError(
                f"{type(reader.processor).__name__} makes {name} of shape "
                f"{tuple(one[name].shape)} of one image and {tuple(two[name].shape)} of two: "
                "Corral cannot join the images of several episodes."
            )
        axes[name] = grown[0]
    return axes
