"""What a world shows, as the content blocks and instructions of standard MCP."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_json

_NEEDED = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource": ("resource",),
    "resource_link": ("uri", "name"),
}
"""The blocks of MCP with what each must have."""


def standard_blocks(blocks: Sequence[Any]) -> list[dict[str, Any]]:
    """Content blocks that every MCP client takes; what is none becomes text."""
    return [_standard_block(block) for block in blocks]


def instructions_of(observation: Any) -> str:
    """What an episode starts with, for a model: the text of ``reset``, or the whole observation."""
    if not isinstance(observation, Mapping):
        return "" if observation is None else str(observation)
    fields = {name: value for name, value in observation.items() if name != "metadata"}
    if set(fields) <= {"prompt", "result"}:
        return "".join(_text(fields.get(name)) for name in ("prompt", "result"))
    return _json(fields)


def _standard_block(block: Any) -> dict[str, Any]:
    if isinstance(block, Mapping):
        kind = block.get("type")
        if all(block.get(name) is not None for name in _NEEDED.get(str(kind), ("",))):
            return {name: value for name, value in block.items() if value is not None}
        if kind == "image_url" and (image := _inline_image(block.get("image_url"))):
            return image
    return {"type": "text", "text": block if isinstance(block, str) else _json(block)}


def _inline_image(image_url: Any) -> dict[str, Any] | None:
    """The picture of a chat message as one of MCP, if it is in the message itself."""
    url = image_url.get("url") if isinstance(image_url, Mapping) else image_url
    match = re.fullmatch(r"data:(?P<type>image/[\w.+-]+);base64,(?P<data>[\w+/=]+)", str(url))
    return match and {"type": "image", "data": match["data"], "mimeType": match["type"]}


def _text(shown: Any) -> str:
    if shown is None or isinstance(shown, str):
        return shown or ""
    blocks = standard_blocks(shown if isinstance(shown, list) else [shown])
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def _json(value: Any) -> str:
    return to_json(value, inf_nan_mode="null", fallback=str).decode()
