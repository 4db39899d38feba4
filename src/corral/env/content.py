"""What environments show: text, content blocks, and pictures in any of the forms they come in."""

from base64 import b64encode
from collections.abc import AsyncGenerator, Generator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, TypeGuard, cast

from corral.errors import require
from corral.records.images import is_image_block, is_picture

_BLOCKS = frozenset({"text", "image", "image_url", "audio", "input_audio", "video"})
"""Types of content blocks; a list of other mappings is data, and shown as text."""


def content_of(value: Any) -> str | list[Any]:
    """What a tool returned, as the content of its message."""
    if isinstance(value, Generator | AsyncGenerator):
        raise TypeError("The tool returned a generator, which is no answer.")
    value = with_blocks(value)
    return value if are_content_blocks(value) else str(cast("object", value))


def with_blocks(value: Any) -> Any:
    """Content blocks for a picture, and for a list that has one among texts and blocks; what has
    no picture stays as it is.

    Pictures are copied: an environment may go on painting on the same canvas.

    Raises:
        TypeError: A list has a picture, and something that is neither text nor a block.
    """
    if is_picture(value):
        return [_block(value)]
    if not isinstance(value, list | tuple):
        return value
    items = list(cast("list[Any] | tuple[Any, ...]", value))
    if not any(is_picture(item) or is_image_block(item) for item in items):
        return cast("Any", value)
    return [_block(item) for item in items]


def are_content_blocks(value: object) -> TypeGuard[list[Any]]:
    """Whether this is what chat messages hold in place of text; other lists are data."""
    if not isinstance(value, list):
        return False
    blocks = cast("list[object]", value)
    return len(blocks) > 0 and all(_is_block(block) for block in blocks)


def for_json(value: Any) -> Any:
    """A nested value with its pictures, and the files and bytes of image blocks, as data URLs.

    Whoever reads them elsewhere sees the same pixels.
    """
    if is_picture(value):
        return _url(_png(value))
    if isinstance(value, Mapping):
        fields = cast("Mapping[Any, Any]", value)
        if not is_image_block(fields):
            return {key: for_json(item) for key, item in fields.items()}
        return {key: item if key == "type" else _source(item) for key, item in fields.items()}
    if isinstance(value, list | tuple):
        return [for_json(item) for item in cast("list[Any] | tuple[Any, ...]", value)]
    return value


def _source(value: Any) -> Any:
    """Where an image block has its picture, readable from elsewhere."""
    if isinstance(value, bytes | bytearray):
        return _url(bytes(value))
    if is_picture(value):
        return for_json(value)
    if isinstance(value, Mapping):
        fields = cast("Mapping[Any, Any]", value)
        return {key: _source(item) for key, item in fields.items()}
    if isinstance(value, str | Path) and _is_file(value):
        # Opened, so that nothing but an image ever leaves in this way.
        return _url(_png(_pil().open(value)))
    return _url(_png(_pil().fromarray(value))) if _is_canvas(value) else value


def _pil() -> Any:
    """PIL, which a server that sends data URLs does without."""
    return require("PIL.Image", extra="vision")


def _is_file(name: str | Path) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False  # too long for a name: a URL with the picture in it


def _png(picture: Any) -> bytes:
    content = BytesIO()
    picture.convert("RGB").save(content, format="PNG", compress_level=1)
    return content.getvalue()


def _url(content: bytes) -> str:
    return f"data:image/png;base64,{b64encode(content).decode()}"


def _block(item: Any) -> Any:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if is_picture(item):
        return {"type": "image", "image": item.copy()}
    if is_image_block(item):
        return {
            key: source.copy() if _is_canvas(source) else source for key, source in item.items()
        }
    if _is_block(item):
        return item
    raise TypeError(
        f"A list with a picture has {item!r:.60} in it: give pictures, texts and content blocks."
    )


def _is_canvas(source: Any) -> bool:
    return is_picture(source) or hasattr(source, "__array_interface__")


def _is_block(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    block = cast("Mapping[str, Any]", value)
    kind = block.get("type")
    if kind == "text":
        return isinstance(block.get("text"), str)
    return isinstance(kind, str) and kind in _BLOCKS
