"""The columns ``image`` and ``images`` of a data set: pictures that belong to a row's prompt."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, cast

from corral.errors import UsageError
from corral.records import Message
from corral.records.images import is_image_block, is_picture

logger = logging.getLogger(__name__)

_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp")
_URLS = ("data:image/", "file://", "http://", "https://")


def images_of(row: Mapping[str, Any]) -> list[Any]:
    """The pictures in a row's columns.

    A text is a picture if it is a URL or ends like a picture's file: a column ``image`` may as well
    name a container.
    """
    several = row.get("images")
    given = [*(several if isinstance(several, list | tuple) else [several]), row.get("image")]
    return [value for value in given if _is_picture(value)]


def tell_of_other_values(rows: Sequence[Mapping[str, Any]]) -> None:
    """Say that the first row has a column for pictures with something else in it."""
    first = rows[0] if rows else {}
    for name in ("image", "images"):
        values = first.get(name)
        listed = values if isinstance(values, list | tuple) else [values]
        other = next((one for one in listed if one is not None and not _is_picture(one)), None)
        if other is not None:
            logger.warning(
                "The column %r has %.60r, which is no picture and so not shown to the model: give "
                "PIL images, bytes, data URLs or paths that end in %s.",
                *(name, other, ", ".join(_SUFFIXES)),
            )


def with_images(messages: Sequence[Message], pictures: Sequence[Any]) -> list[Message]:
    """The prompt with a row's pictures: in image blocks that wait for one, else before its text.

    Raises:
        UsageError: The prompt has another number of empty image blocks, or no user message.
    """
    if not pictures:
        return list(messages)
    empty = sum(map(_is_empty, _blocks(messages)))
    if empty not in (0, len(pictures)):
        raise UsageError(
            f"A prompt has {empty} empty image blocks, and its row {len(pictures)} images: give as "
            "many as there are blocks, or a prompt without such blocks."
        )
    return _filled(messages, list(pictures)) if empty else _in_front(messages, pictures)


def refuse_images(rows: Sequence[Mapping[str, Any]], model: Any) -> None:
    """Stop where a data set has images that the model cannot read.

    Raises:
        UsageError: A row has a picture.
    """
    found = next((index for index, row in enumerate(rows) if images_of(row)), None)
    if found is not None:
        name = getattr(model, "name_or_path", "") or type(model).__name__
        raise UsageError(
            f"train_dataset[{found}] has an image, but {name} ({type(model).__name__}) reads text "
            "only. Train a vision-language model, with its AutoProcessor as processing_class, or "
            "drop the columns `image` and `images`."
        )


def _filled(messages: Sequence[Message], pictures: list[Any]) -> list[Message]:
    filled: list[Message] = []
    for message in messages:
        content: Any = message.get("content")
        if isinstance(content, list):
            content = [
                {"type": "image", "image": pictures.pop(0)} if _is_empty(block) else block
                for block in content
            ]
        filled.append(cast(Message, {**message, "content": content}))
    return filled


def _in_front(messages: Sequence[Message], pictures: Sequence[Any]) -> list[Message]:
    place = next((i for i, message in enumerate(messages) if message["role"] == "user"), None)
    if place is None:
        raise UsageError("A row with images needs a prompt with a user message to show them in.")
    message = messages[place]
    content: Any = message.get("content") or ""
    text = content if isinstance(content, list) else [{"type": "text", "text": content}]
    blocks = [{"type": "image", "image": picture} for picture in pictures]
    shown = cast(Message, {**message, "content": [*blocks, *text]})
    return [*messages[:place], shown, *messages[place + 1 :]]


def _blocks(messages: Sequence[Message]) -> list[Any]:
    contents = [message.get("content") for message in messages]
    return [block for content in contents if isinstance(content, list) for block in content]


def _is_empty(block: Any) -> bool:
    return is_image_block(block) and not any(value for key, value in block.items() if key != "type")


def _is_picture(value: Any) -> bool:
    if isinstance(value, str | PurePath):
        text = str(value).lower()
        return text.startswith(_URLS) or text.endswith(_SUFFIXES)
    if isinstance(value, Mapping):
        return value.get("bytes") is not None or _is_picture(value.get("path"))
    is_array = getattr(value, "ndim", 0) in (2, 3)
    return isinstance(value, bytes) or is_picture(value) or is_array
