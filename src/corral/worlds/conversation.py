"""What a model is shown of a conversation that others have written."""

from collections.abc import Mapping, Sequence
from typing import Any

Shown = str | list[dict[str, Any]]
"""Text, or content blocks where there are pictures."""


def shown(messages: Sequence[Mapping[str, Any]]) -> Shown:
    """Messages of chat completions as one text, or as content blocks if there are pictures.

    In a conversation that is more than instructions and a question, each says who speaks.
    """
    is_plain = all(message["role"] in ("system", "user", "tool") for message in messages)
    blocks: list[dict[str, Any]] = []
    for message in messages:
        content = message.get("content") or ""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not is_plain:
            blocks.append({"type": "text", "text": f"[{message['role']}]"})
        blocks += [dict(part) for part in parts]
    if all(block["type"] == "text" for block in blocks):
        return "\n\n".join(block["text"] for block in blocks)
    return blocks
