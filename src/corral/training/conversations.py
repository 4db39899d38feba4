"""Finished conversations, token for token as a model would have played them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from corral.chat import ChatFormat
from corral.chat.proof import without_thoughts
from corral.chat.tokenizer import decode, encode, first_difference
from corral.errors import TemplateError, UsageError
from corral.records import Message

_QUESTION: Message = {"role": "user", "content": "dummy"}
Tools = list[dict[str, Any]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A conversation as tokens."""

    ids: tuple[int, ...]
    is_said: tuple[int, ...]
    """1 on the tokens of assistant turns, their stop token included."""


def lay_out(
    chat: ChatFormat, messages: Sequence[Message], tools: Tools, *, first: int = 0
) -> Layout:
    """Lay a conversation out the way a rollout would: prompt, turn, suffix, turn, ...

    What stands behind the last assistant turn is kept: it is not trained, and costs little.

    Args:
        first: Index of the first message that may be a demonstrated turn. Assistant messages before
            it belong to the prompt.

    Raises:
        UsageError: No assistant message.
        TemplateError: The template writes this conversation differently, reasoning apart (which
            many templates drop from history).
    """
    position = _next_assistant(messages, first)
    if position is None:
        raise UsageError("A conversation without an assistant message has nothing to learn.")
    ids = list(chat.prompt_ids(list(messages[:position]), tools))
    said = [0] * len(ids)
    while True:
        turn = chat.turn_ids(messages[position])
        ids += turn
        said += [1] * len(turn)
        after = _next_assistant(messages, position + 1)
        if after is None:
            break
        between = list(messages[position + 1 : after])
        if not between:
            raise UsageError(
                f"Messages {position} and {after} are assistant turns with nothing between them: "
                "join them to one message."
            )
        suffix = chat.suffix_ids(between, messages[position])
        ids += suffix
        said += [0] * len(suffix)
        position = after
    rest = _rest(chat, messages, position)
    _compare(chat, [*ids, *rest], messages, tools)
    return Layout(ids=(*ids, *rest), is_said=(*said, *[0] * len(rest)))


def _next_assistant(messages: Sequence[Message], start: int) -> int | None:
    later = range(start, len(messages))
    return next((index for index in later if messages[index]["role"] == "assistant"), None)


def _rest(chat: ChatFormat, messages: Sequence[Message], last: int) -> list[int]:
    """What the template writes behind the stop token of the last assistant turn."""
    renderer, stop = chat.renderer, chat.turn_end.text
    later = chat.control.in_messages(messages[last:])
    alone = renderer.text([_QUESTION, later[0]])
    end = alone.rfind(stop)
    if end < len(chat.opening.prompt) - len(chat.opening.text):
        return []  # the turn ends with what opens the next one, and here none does
    head = alone[: end + len(stop)]
    whole = renderer.text([_QUESTION, *later])
    if not whole.startswith(head):
        # Reasoning is left out of a turn that is not the last: what follows is as it would be.
        text = chat.suffixes.text(later[1:], assistant=later[0])
        return encode(renderer.tokenizer, stop + text.removesuffix(chat.opening.text))[1:]
    return encode(renderer.tokenizer, stop + whole[len(head) :])[1:]


def _compare(
    chat: ChatFormat, ids: Sequence[int], messages: Sequence[Message], tools: Tools
) -> None:
    """Show that the layout is what the template writes, reasoning and white space apart."""
    tokenizer = chat.renderer.tokenizer
    theirs = _plain(chat, chat.renderer.text(messages, tools=tools))
    ours = _plain(chat, decode(tokenizer, ids))
    # A turn that ends with what opens the next one has no stop token where it is the last.
    if theirs in (ours, ours.removesuffix(_plain(chat, chat.turn_end.text))):
        return
    difference = first_difference(tokenizer, encode(tokenizer, theirs), encode(tokenizer, ours))
    raise TemplateError(
        "The chat template writes this conversation differently from how it would be played "
        f"({difference}). Use a template that renders earlier turns alike, or train on whole "
        "conversations (assistant_only_loss=False)."
    )


def _plain(chat: ChatFormat, text: str) -> str:
    return "".join(without_thoughts(text, chat.syntax.reasoning).split())
