"""Rows whose prompt fills the model's context by itself, found before anything is played.

Prompts are never cut, so an episode of such a row could not begin.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from corral.chat import ChatFormat
from corral.chat.messages import messages_of
from corral.chat.pictures import has_image
from corral.chat.tokenizer import text_prompt_ids
from corral.env import ToolSet
from corral.errors import TemplateError, UsageError
from corral.records import Message
from corral.training.picture_table import PictureTable

logger = logging.getLogger(__name__)

MESSAGE_TOKENS = 64
"""More than a template writes around a message."""
_SHOWN_ROWS = 5


def check_prompt_lengths(
    rows: Sequence[Mapping[str, Any]],
    tools: Mapping[str | None, ToolSet],
    chat: ChatFormat,
    context: int,
) -> None:
    """Name the rows that cannot be played, whatever their environment adds to their prompt.

    Rows with pictures are not looked at: how many tokens a picture takes, only reading it tells.

    Args:
        tools: What a task shows, by the name of its environment; under None for all others.
        context: How many tokens the model reads at most.

    Raises:
        UsageError: No row can be played.
    """
    if isinstance(rows, PictureTable):
        return
    found = too_long(rows, tools, chat, context)
    if not found:
        return
    shown = [f"train_dataset[{row}] ({length} tokens)" for row, length in found.items()]
    listed = ", ".join(shown[:_SHOWN_ROWS]) + (", ..." if len(shown) > _SHOWN_ROWS else "")
    told = (
        f"{len(found)} of {len(rows)} rows have a prompt that does not fit into the model's context"
        f" of {context} tokens: {listed}. Prompts are never cut."
    )
    if len(found) == len(rows):
        raise UsageError(f"{told} Shorten them, or use a model with a longer context.")
    logger.warning("%s Nothing is learned from these rows: leave them out, or shorten them.", told)


def too_long(
    rows: Sequence[Mapping[str, Any]],
    tools: Mapping[str | None, ToolSet],
    chat: ChatFormat,
    context: int,
) -> dict[int, int]:
    """By the number of the row: how many tokens its prompt has, where that leaves no room.

    Only prompts with so many bytes that they might be too long are tokenised: no token of a text
    has less than one.
    """
    frames = {name: _prompt_tokens([_EMPTY], own, chat) for name, own in tools.items()}
    lengths: dict[int, int] = {}
    for index, row in enumerate(rows):
        name = None if None in tools else row.get("environment")
        messages = messages_of(row.get("prompt"))
        most = frames[name] + sum(map(_bytes, messages)) + MESSAGE_TOKENS * len(messages)
        if most < context or any(map(has_image, messages)):
            continue
        length = _row_tokens(row, messages, tools[name], chat)
        if length >= context:
            lengths[index] = length
    return lengths


_EMPTY = Message(role="user", content="")


def _row_tokens(
    row: Mapping[str, Any], messages: list[Message], tools: ToolSet, chat: ChatFormat
) -> int:
    prompt = row.get("prompt")
    if isinstance(prompt, str) and not len(tools):
        # No shorter than this with a chat template around it.
        return len(text_prompt_ids(chat.renderer.tokenizer, prompt))
    return _prompt_tokens(messages, tools, chat)


def _prompt_tokens(messages: list[Message], tools: ToolSet, chat: ChatFormat) -> int:
    try:
        return len(chat.prompt(messages, tools.schemas or None).ids)
    except TemplateError:
        return 0  # playing the row tells what is wrong with it


def _bytes(message: Message) -> int:
    return len(repr(message).encode("utf-8", "replace"))
