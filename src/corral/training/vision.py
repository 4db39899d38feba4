"""Models that read images: their processors, and the rows of theirs that cannot be learned from."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn
from transformers import AutoConfig, AutoProcessor
from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES

from corral.errors import UsageError
from corral.records import PlacedImage, Sample

logger = logging.getLogger(__name__)


def reads_images(model: str | Path | nn.Module) -> bool:
    """Whether a model, or what lies under a path or hub id, is one for images and text."""
    if isinstance(model, nn.Module):
        unwrap: Any = getattr(model, "get_base_model", None)
        base: Any = model if unwrap is None else unwrap()
        return type(base).__name__ in _class_names()
    try:
        config = AutoConfig.from_pretrained(str(model), trust_remote_code=False)
    except (OSError, ValueError):
        return False  # whoever loads the model says what is wrong
    return any(name in _class_names() for name in getattr(config, "architectures", None) or ())


def load_processor(name: str | Path) -> Any:
    """The multimodal processor beside a model.

    Raises:
        UsageError: There is none, or it needs a package that is not installed.
    """
    try:
        return AutoProcessor.from_pretrained(str(name))
    except (OSError, ValueError, ImportError, AttributeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UsageError(
            f"model={str(name)!r} reads images, but its processor cannot be loaded ({reason}). "
            "pip install 'corral[vision]' (processors that also read videos need torchvision, in "
            "the release that fits torch), or pass processing_class=tokenizer to train on text."
        ) from error


def without_mismatches(rows: Sequence[Sample], placeholder: int) -> list[Sample]:
    """The rows in which each placeholder has its pixels.

    A model may write the token that stands for an image. Its forward would then refuse the whole
    micro-batch, so such a row is left out, and told of.
    """
    kept = [row for row in rows if has_all_images(row.ids, row.images, placeholder)]
    if len(kept) < len(rows):
        logger.warning(
            "%d of %d rows are not trained: the model wrote a token that stands for an image.",
            len(rows) - len(kept),
            len(rows),
        )
    return kept


def has_all_images(ids: Sequence[int], images: Sequence[PlacedImage], placeholder: int) -> bool:
    """Whether there are as many placeholders as the images take."""
    return ids.count(placeholder) == sum(placed.image.tokens for placed in images)


def _class_names() -> frozenset[str]:
    names: set[str] = set()
    for value in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.values():
        names |= {value} if isinstance(value, str) else set(value)
    return frozenset(names)
