"""Finished conversations, token for token as a model would have played them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from corral.chat import ChatFormat
from corral.chat.images import Encoded
from corral.chat.pictures import has_image
from corral.chat.proof import without_thoughts
from corral.chat.tokenizer import decode, encode, first_difference
from corral.chat.written import remedy_of
from corral.errors import ImageError, TemplateError, UsageError
from corral.records import Message, PlacedImage

_QUESTION: Message = {"role": "user", "content": "dummy"}
Tools = list[dict[str, Any]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A conversation as tokens."""

    ids: tuple[int, ...]
    is_said: tuple[int, ...]
    """1 on the tokens of assistant turns, their stop token included."""
    images: tuple[PlacedImage, ...] = ()


def lay_out(
    chat: ChatFormat, messages: Sequence[Message], tools: Tools, *, first: int = 0
) -> Layout:
    """Lay a conversation out the way a rollout would: prompt, turn, suffix, turn, ...

    What stands behind the last assistant turn is kept: it is not trained, and costs little.

    Args:
        messages: With pictures as ``chat.loaded`` gives them.
        first: Index of the first message that may be a demonstrated turn. Assistant messages before
            it belong to the prompt.

    Raises:
        UsageError: No assistant message.
        ImageError: A demonstrated turn has an image.
        TemplateError: The template writes this conversation differently, reasoning apart (which
            many templates drop from history).
    """
    position = _next_assistant(messages, first)
    if position is None:
        roles = list(dict.fromkeys(str(message["role"]) for message in messages))
        raise UsageError(
            "A conversation without an assistant message has nothing to learn (its roles: "
            f"{', '.join(roles)}).{remedy_of(roles)}"
        )
    chat.renderer.check_written(messages, tools=tools)
    laid = _Tokens(chat.prompt(list(messages[:position]), tools))
    while True:
        laid.say(chat, messages[position])
        after = _next_assistant(messages, position + 1)
        if after is None:
            break
        between = list(messages[position + 1 : after])
        if not between:
            raise UsageError(
                f"Messages {position} and {after} are assistant turns with nothing between them: "
                "join them to one message."
            )
        laid.hear(chat.suffix(between, messages[position]))
        position = after
    laid.hear(_rest(chat, messages, position))
    _compare(chat, laid.ids, messages, tools)
    return Layout(ids=tuple(laid.ids), is_said=tuple(laid.is_said), images=tuple(laid.images))


class _Tokens:
    """A conversation that grows."""

    def __init__(self, prompt: Encoded) -> None:
        self.ids: list[int] = []
        self.is_said: list[int] = []
        self.images: list[PlacedImage] = []
        self.hear(prompt)

    def hear(self, heard: Encoded) -> None:
        """Append what is not learned."""
        self.images += [image.moved(len(self.ids)) for image in heard.images]
        self.ids += heard.ids
        self.is_said += [0] * len(heard.ids)

    def say(self, chat: ChatFormat, message: Message) -> None:
        """Append a turn of the assistant's."""
        if has_image(message):
            raise ImageError(
                "An assistant message has an image, which no model samples: show it in the message "
                "before."
            )
        turn = chat.turn_ids(message, after=self.ids)
        self.ids += turn
        self.is_said += [1] * len(turn)


def _next_assistant(messages: Sequence[Message], start: int) -> int | None:
    later = range(start, len(messages))
    return next((index for index in later if messages[index]["role"] == "assistant"), None)


def _rest(chat: ChatFormat, messages: Sequence[Message], last: int) -> Encoded:
    """What the template writes behind the stop token of the last assistant turn."""
    renderer, stop = chat.renderer, chat.turn_end.text
    later = chat.control.in_messages(messages[last:])
    alone = renderer.text([_QUESTION, later[0]])
    end = alone.rfind(stop)
    if end < len(chat.opening.prompt) - len(chat.opening.text):
        return Encoded([])  # the turn ends with what opens the next one, and here none does
    head = alone[: end + len(stop)]
    whole = renderer.text([_QUESTION, *later])
    rest = whole[len(head) :]
    if not whole.startswith(head):
        # Reasoning is left out of a turn that is not the last: what follows is as it would be.
        text = chat.suffixes.text(later[1:], assistant=later[0])
        rest = text.removesuffix(chat.opening.text)
    ids, images = renderer.encode(stop + rest, later)
    return Encoded(ids[1:], tuple(image.moved(-1) for image in images))


def _compare(
    chat: ChatFormat, ids: Sequence[int], messages: Sequence[Message], tools: Tools
) -> None:
    """Show that the layout is what the template writes, reasoning and white space apart."""
    tokenizer, renderer = chat.renderer.tokenizer, chat.renderer
    text = renderer.text(messages, tools=tools)
    if any(map(has_image, messages)):  # with as many placeholders as an image takes
        text = decode(tokenizer, renderer.encode(text, messages).ids)
    theirs = _plain(chat, text)
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
