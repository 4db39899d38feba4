"""Finished conversations as training rows, token for token what the model would have sampled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corral.chat import ChatFormat
from corral.errors import UsageError
from corral.records import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRow:
    """One conversation as tokens; trained where an assistant speaks."""

    ids: tuple[int, ...]
    loss_mask: tuple[int, ...]
    """1 on the tokens of assistant turns, their stop token included."""


def encode_conversation(
    chat: ChatFormat,
    messages: Sequence[Message],
    tools: list[dict[str, Any]] | None,
    *,
    max_length: int | None,
) -> ConversationRow:
    """Lay a conversation out the way a rollout would: prompt, turn, suffix, turn, ...

    Raises:
        UsageError: No assistant message, or none that fits ``max_length``.
    """
    first = _first_assistant(messages)
    ids = list(chat.prompt_ids(list(messages[:first]), tools))
    mask = [0] * len(ids)
    position = first
    while position < len(messages):
        turn = chat.turn_ids(messages[position])
        ids += turn
        mask += [1] * len(turn)
        after = _next_assistant(messages, position + 1)
        if after is None:
            break
        between = list(messages[position + 1 : after])
        suffix = chat.suffix_ids(between)
        ids += suffix
        mask += [0] * len(suffix)
        position = after
    row = ConversationRow(ids=tuple(ids[:max_length]), loss_mask=tuple(mask[:max_length]))
    if not any(row.loss_mask):
        raise UsageError(
            f"The first {max_length} tokens of a conversation of {len(ids)} have no assistant "
            "token: raise max_length."
        )
    return row


def conversation_of(row: Mapping[str, Any]) -> tuple[list[Message], list[dict[str, Any]] | None]:
    """Messages and tool schemas of a data row: ``messages``, or ``prompt`` and ``completion``."""
    tools = row.get("tools") or None
    if "messages" in row:
        return list(row["messages"]), tools
    if "prompt" in row and "completion" in row:
        return [
            *_as_messages(row["prompt"], "user"),
            *_as_messages(row["completion"], "assistant"),
        ], tools
    raise UsageError(
        f"A row with the columns {sorted(row)} can't be learned from: give 'messages', or 'prompt' "
        "and 'completion'."
    )


def _as_messages(value: Any, role: Any) -> list[Message]:
    return [{"role": role, "content": value}] if isinstance(value, str) else list(value)


def _first_assistant(messages: Sequence[Message]) -> int:
    first = _next_assistant(messages, 0)
    if first is None:
        raise UsageError("A conversation without an assistant message has nothing to learn.")
    return first


def _next_assistant(messages: Sequence[Message], start: int) -> int | None:
    later = range(start, len(messages))
    return next((index for index in later if messages[index]["role"] == "assistant"), None)
