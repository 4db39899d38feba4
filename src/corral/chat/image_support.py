"""How a processor's own chat template takes text and shows images, found by trying."""

from collections.abc import Mapping
from copy import copy
from typing import Any

from corral.chat.corral_template import corral_template
from corral.chat.images import ImageReader
from corral.chat.render import Renderer
from corral.chat.tokenizer import Tokenizer
from corral.chat.turn_end import PROBE_TEXT
from corral.errors import TemplateError
from corral.records import Message

_BEFORE, _AFTER = f"{PROBE_TEXT}before", f"{PROBE_TEXT}after"


def is_processor(given: Any) -> bool:
    """Whether this is a multimodal processor of ``transformers`` and no tokenizer."""
    return getattr(given, "image_processor", None) is not None


def text_part(processor: Any) -> Tokenizer:
    """The tokenizer of a processor, with the processor's chat template; nothing is changed."""
    template, tokenizer = getattr(processor, "chat_template", None), processor.tokenizer
    if template and tokenizer.chat_template != template:
        tokenizer = copy(tokenizer)
        tokenizer.chat_template = template
    return tokenizer


def tokenizer_and_images(given: Any) -> tuple[Tokenizer, ImageReader | None]:
    """The tokenizer, and what reads images if a multimodal processor was given."""
    return (text_part(given), ImageReader.of(given)) if is_processor(given) else (given, None)


def plain_renderer(
    tokenizer: Tokenizer, options: Mapping[str, Any], images: ImageReader | None
) -> Renderer:
    """The tokenizer's own template, with contents as blocks where it leaves out others."""
    plain = Renderer(tokenizer=tokenizer, template=None, options=options, images=images)
    if images is None or _shows_text(plain):
        return plain
    return Renderer(
        tokenizer=tokenizer, template=None, options=options, images=images, content_as_blocks=True
    )


def corral_renderer(
    tokenizer: Tokenizer, options: Mapping[str, Any], images: ImageReader | None
) -> Renderer:
    """Corral's template, for tokenizers whose own has no place for tools; images as theirs has."""
    mark = None if images is None else _image_mark(tokenizer, options, images)
    template = corral_template(tokenizer, image_mark=mark)
    return Renderer(tokenizer=tokenizer, template=template, options=options, images=images)


def _image_mark(tokenizer: Tokenizer, options: Mapping[str, Any], images: ImageReader) -> str:
    """What the tokenizer's own template writes for an image between two texts."""
    if not tokenizer.chat_template:
        return images.token
    blocks = [
        {"type": "text", "text": _BEFORE},
        {"type": "image"},
        {"type": "text", "text": _AFTER},
    ]
    try:
        text = plain_renderer(tokenizer, options, images).text([_asking(blocks)])
    except TemplateError:
        return images.token
    between = text.partition(_BEFORE)[2].partition(_AFTER)[0]
    # A template that moves images to the front writes none here.
    return between if between.count(images.token) == 1 else images.token


def _shows_text(renderer: Renderer) -> bool:
    try:
        return PROBE_TEXT in renderer.text([_asking(PROBE_TEXT)])
    except TemplateError:
        return False


def _asking(content: Any) -> Message:
    return {"role": "user", "content": content}
