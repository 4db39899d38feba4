"""What does not go together with images in supervised fine-tuning, told before it is trained."""

from collections.abc import Sequence

from corral.chat.images import ImageReader
from corral.errors import ImageError, UsageError
from corral.records import PlacedImage
from corral.training.sft_config import SFTConfig
from corral.training.vision import has_all_images


def check_images(reader: ImageReader | None, args: SFTConfig, *, what: str = "it") -> None:
    """See that a row with images may be trained.

    Args:
        what: What has images, for errors.

    Raises:
        ImageError: The model reads text only.
        UsageError: An option lays rows behind each other, or keeps their ends.
    """
    if reader is None:
        raise ImageError(
            f"{what} has images, but the model reads text only. Train a vision-language model, "
            "with its AutoProcessor as processing_class, or drop the images."
        )
    for name in ("packing", "eval_packing", "padding_free"):
        if getattr(args, name):
            raise UsageError(
                f"{name}=True lays rows behind each other, where the positions of images would be "
                f"wrong, and {what} has images. Set {name}=False."
            )
    if args.max_length is not None and args.truncation_mode == "keep_end":
        raise UsageError(
            "truncation_mode='keep_end' would cut off the images that what is kept speaks of. Use "
            "'keep_start', or max_length=None."
        )


def check_placeholders(
    ids: Sequence[int], images: Sequence[PlacedImage], reader: ImageReader
) -> None:
    """See that each placeholder among the ids has its pixels.

    Raises:
        UsageError: Text spells the placeholder, where no picture was given for it.
    """
    if not has_all_images(ids, images, reader.token_id):
        raise UsageError(
            f"it has {ids.count(reader.token_id)} tokens {reader.token!r}, of which its "
            f"{len(images)} images take {sum(placed.image.tokens for placed in images)}: give an "
            "image for each, in the columns `image` or `images`, or take them out of the text."
        )
