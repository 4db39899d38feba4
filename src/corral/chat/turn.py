"""An assistant message as the model would sample it: what SFT trains on."""

import re
from collections import Counter
from dataclasses import dataclass

from corral.chat.reading import THINK_CLOSE, THINK_OPEN
from corral.chat.render import Renderer
from corral.chat.turn_end import TurnEnd
from corral.errors import TemplateError
from corral.records import Message

_QUESTION: Message = {"role": "user", "content": "dummy"}
_THINK_AT_END = re.compile(rf"{THINK_OPEN}\s*(?:{THINK_CLOSE}\s*)?\Z")
_THINK_AT_START = re.compile(rf"{THINK_OPEN}.*?{THINK_CLOSE}\s*", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a template writes where the model is to speak."""

    text: str
    """The last part of a dummy prompt: what ``add_generation_prompt`` adds."""
    prompt: str
    """The whole dummy prompt."""

    @property
    def opens_thinking(self) -> bool:
        """The model begins inside a reasoning block."""
        return THINK_CLOSE not in self.text[self.text.rfind(THINK_OPEN) :] and (
            THINK_OPEN in self.text
        )

    @property
    def closes_thinking(self) -> bool:
        """The reasoning block is written, empty, by the template."""
        return THINK_OPEN in self.text and not self.opens_thinking


def find_opening(renderer: Renderer) -> Opening:
    """Look what the template adds for the model to speak."""
    without = renderer.text([_QUESTION])
    prompt = renderer.text([_QUESTION], opens_turn=True)
    if not prompt.startswith(without):
        raise TemplateError(
            "With add_generation_prompt the chat template changes what precedes it: "
            f"{without!r} becomes {prompt!r}."
        )
    return Opening(text=prompt[len(without) :], prompt=prompt)


def turn_text(renderer: Renderer, opening: Opening, turn_end: TurnEnd, message: Message) -> str:
    """The message as it follows the generation prompt, through the stop token."""
    if opening.closes_thinking and (message.get("reasoning_content") or "").strip():
        raise TemplateError(
            "The message has reasoning_content but the template opens turns with a closed, empty "
            "think block: remove the reasoning, or render with thinking enabled."
        )
    rendered = _through_turn_end(renderer, opening, turn_end, message)
    _check_has_calls(rendered, opening, message)
    if rendered.startswith(opening.prompt):
        return rendered[len(opening.prompt) :]
    return _after_think_opening(rendered, opening, message)


def _through_turn_end(
    renderer: Renderer, opening: Opening, turn_end: TurnEnd, message: Message
) -> str:
    """The question and the message, through the stop token."""
    rendered = renderer.text([_QUESTION, message])
    end = rendered.rfind(turn_end.text)
    if end >= len(opening.prompt) - len(opening.text):
        return rendered[: end + len(turn_end.text)]
    # Some templates end a turn with what opens the next one, or a turn of calls with its results.
    followed = renderer.text([_QUESTION, message, *_followers(message)])
    if not followed.startswith(rendered):  # reasoning is left out of what is no longer the last
        return rendered + turn_end.text
    end = turn_end.first_after(followed, len(opening.prompt) - len(opening.text))
    if end is None:
        raise TemplateError(f"The template ends a turn without a stop token: {followed!r}.")
    return followed[:end]


def _check_has_calls(rendered: str, opening: Opening, message: Message) -> None:
    """Some templates write the first call of a message only."""
    said = rendered[len(opening.prompt) - len(opening.text) :]
    for name, count in Counter(_names(message)).items():
        if said.count(name) < count:
            raise TemplateError(
                f"The chat template writes {said.count(name)} of the {count} calls of {name!r} in "
                "one message: give each call a message of its own."
            )


def _names(message: Message) -> list[str]:
    calls = message.get("tool_calls") or []
    return [str(call.get("function", call).get("name", "")) for call in calls]


def _followers(message: Message) -> list[Message]:
    answers: list[Message] = [
        {"role": "tool", "name": name, "content": "dummy"} for name in _names(message)
    ]
    return answers or [_QUESTION]


def _after_think_opening(rendered: str, opening: Opening, message: Message) -> str:
    """The turn where the generation prompt opens a think block that the rendered turn lacks."""
    header = _THINK_AT_END.sub("", opening.prompt)
    if not rendered.startswith(header):
        raise TemplateError(
            "The generation prompt of the chat template is not how an assistant turn begins: "
            f"{opening.prompt!r} is no beginning of {rendered!r}."
        )
    said = _THINK_AT_START.sub("", rendered[len(header) :], count=1)
    if not opening.opens_thinking:
        return said
    reasoning = (message.get("reasoning_content") or "").strip("\n")
    return f"{reasoning}\n{THINK_CLOSE}\n\n{said}"
