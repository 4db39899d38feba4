"""Joins what an environment's ``reset`` returned to the prompt."""

from collections.abc import Sequence
from typing import Any, cast

from corral.errors import UsageError
from corral.records import Message


def merge_observation(messages: Sequence[Message], observation: object) -> list[Message]:
    """The prompt with the first observation added to its last message; nothing is mutated.

    Args:
        messages: The prompt; an empty one becomes a user message.
        observation: None (nothing to add), text (appended without a separator), or a list of
            content blocks (the content becomes blocks too).

    Raises:
        UsageError: The observation is something else.
    """
    merged = list(messages) or [Message(role="user", content="")]
    if observation is None:
        return merged
    last = merged[-1]
    content: Any = last.get("content")
    content = "" if content is None else content
    if isinstance(observation, str) and isinstance(content, str):
        joined: Any = content + observation
    elif isinstance(observation, str | list):
        joined = _blocks(content) + _blocks(cast("Any", observation))
    else:
        raise UsageError(
            f"reset returned {type(observation).__name__} {observation!r:.80}: return text, a list "
            "of content blocks, or None."
        )
    merged[-1] = cast("Message", {**last, "content": joined})
    return merged


def _blocks(content: str | list[Any]) -> list[Any]:
    if isinstance(content, list):
        return list(content)
    return [{"type": "text", "text": content}]
