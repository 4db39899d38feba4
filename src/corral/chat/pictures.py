"""Pictures in messages: the blocks that hold them, and the many forms they come in."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote_to_bytes, urlparse

from corral.errors import ImageError, require
from corral.records import Message
from corral.records.images import is_image_block

_KEYS = ("image", "url", "path", "base64", "image_url", "data")
"""Where a block of type image may have its picture."""


_BASE64_STARTS = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR")
"""How PNG, JPEG, GIF and WebP begin in base64: what transformers takes beside paths and URLs."""


def has_image(message: Message) -> bool:
    """Whether a message shows an image."""
    content = message.get("content")
    return isinstance(content, list) and any(map(is_image_block, cast("list[Any]", content)))


def pictures_of(messages: Sequence[Message]) -> list[Any]:
    """What the image blocks of messages that :func:`loaded` hold, in order."""
    return [
        block["image"]
        for message in messages
        if has_image(message)
        for block in message["content"]
        if is_image_block(block)
    ]


def loaded(messages: Sequence[Message]) -> list[Message]:
    """The messages with each picture as a ``PIL`` image in RGB of its own.

    An environment may go on painting on what it returned, and a file may change.

    Raises:
        ImageError: A block has no picture, or one that cannot be read.
    """
    return [
        cast("Message", {**message, "content": [_loaded_block(b) for b in message["content"]]})
        if has_image(message)
        else message
        for message in messages
    ]


def open_picture(source: Any) -> Any:
    """A ``PIL.Image.Image`` in RGB from a picture, an array, bytes, a path, a data URL, or a
    mapping with ``bytes`` or ``path`` (as undecoded data sets have).

    Raises:
        ImageError: It is something else, or cannot be read.
    """
    try:
        return _opened(source).convert("RGB")
    except ImageError:
        raise
    except (OSError, ValueError, TypeError, SyntaxError, binascii.Error) as error:
        why = str(error)[:200]
        raise ImageError(f"{_shown(source)} is no readable image: {why}") from error
    except require("PIL.Image", extra="vision").DecompressionBombError as error:
        raise ImageError(f"{_shown(source)}: {error}") from error


def _loaded_block(block: Any) -> Any:
    if not is_image_block(block):
        return block
    source = next((block[key] for key in _KEYS if block.get(key) is not None), None)
    if source is None:
        raise ImageError(
            f'A content block of type image has no picture: give {{"type": "image", "image": ...}} '
            f"with a PIL image, bytes, a path or a data URL; it has the keys {sorted(block)}."
        )
    if block.get("base64") is source or block.get("data") is source:
        source = base64.b64decode(source) if isinstance(source, str) else source
    return {"type": "image", "image": open_picture(source)}


def _opened(source: Any) -> Any:
    images = require("PIL.Image", extra="vision")
    if isinstance(source, images.Image):
        return source
    if isinstance(source, bytes | bytearray):
        return images.open(BytesIO(source))
    if isinstance(source, Path):
        return images.open(source)
    if isinstance(source, str):
        return _from_text(images.open, source)
    if isinstance(source, Mapping):
        fields = cast("Mapping[str, Any]", source)
        inner = next((fields[key] for key in ("bytes", "url", "path") if fields.get(key)), None)
        if inner is not None:
            return _opened(inner)
    elif hasattr(source, "__array_interface__"):
        return images.fromarray(source)
    raise ImageError(
        f"{_shown(source)} is no image: give a PIL image, an array [height, width, 3] of uint8, "
        "bytes, a path or a data URL."
    )


def _from_text(open_image: Callable[[Any], Any], text: str) -> Any:
    if text.startswith(_BASE64_STARTS):
        return open_image(BytesIO(base64.b64decode(text)))
    scheme = urlparse(text).scheme if ":" in text[:16] else ""
    if scheme == "data":
        head, _, body = text.partition(",")
        is_base64 = head.endswith(";base64")
        content = base64.b64decode(body) if is_base64 else unquote_to_bytes(body)
        return open_image(BytesIO(content))
    if scheme in ("http", "https"):
        raise ImageError(
            f"{text[:80]} is on the network, where training does not fetch images: download it "
            "first and give a path, bytes or a PIL image."
        )
    return open_image(Path(urlparse(text).path if scheme == "file" else text))


def _shown(source: Any) -> str:
    text = repr(source)
    return text if len(text) <= 80 else f"{text[:60]}… ({type(source).__name__})"
