"""An assistant message as the model would sample it: what SFT trains on."""

import re
from dataclasses import dataclass

from corral.chat.render import Renderer
from corral.chat.turn_end import TurnEnd
from corral.errors import TemplateError
from corral.records import Message

_QUESTION: Message = {"role": "user", "content": "dummy"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a template writes where the model is to speak."""

    text: str
    """The last part of a dummy prompt: what ``add_generation_prompt`` adds."""
    prompt: str
    """The whole dummy prompt."""
    reasoning: tuple[str, str]
    """What encloses reasoning."""

    @property
    def opens_thinking(self) -> bool:
        """The model begins inside a reasoning block."""
        opens, closes = self.reasoning
        is_open = opens in self.text and closes not in self.text[self.text.rfind(opens) :]
        return is_open or _ends_with(self.prompt, opens)

    @property
    def closes_thinking(self) -> bool:
        """The reasoning block is written, empty, by the template."""
        return self.reasoning[0] in self.text and not self.opens_thinking

    def opens_thinking_after(self, text: str) -> bool:
        """Whether a turn after ``text`` begins inside a reasoning block.

        Some templates open one after a question only, some only after the result of a tool.
        """
        if self.text and text.endswith(self.text):
            return self.opens_thinking
        return _ends_with(text, self.reasoning[0])


def find_opening(renderer: Renderer, reasoning: tuple[str, str]) -> Opening:
    """Look what the template adds for the model to speak."""
    without = renderer.text([_QUESTION])
    prompt = renderer.text([_QUESTION], opens_turn=True)
    if not prompt.startswith(without):
        raise TemplateError(
            "With add_generation_prompt the chat template changes what precedes it: "
            f"{without!r} becomes {prompt!r}."
        )
    return Opening(text=prompt[len(without) :], prompt=prompt, reasoning=reasoning)


def turn_text(
    renderer: Renderer,
    opening: Opening,
    turn_end: TurnEnd,
    message: Message,
    *,
    is_thinking: bool | None = None,
) -> str:
    """The message as it follows the generation prompt, through the stop token.

    Args:
        is_thinking: Whether the turn begins inside a reasoning block; None: as after a question.
    """
    text = _after_question(renderer, opening, turn_end, message)
    if is_thinking in (None, opening.opens_thinking):
        return text
    opens, closes = opening.reasoning
    if is_thinking:
        return (
            text.removeprefix(opens).removeprefix("\n") if text.startswith(opens) else closes + text
        )
    if (message.get("reasoning_content") or "").strip():
        return opens + text
    return text.partition(closes)[2].lstrip("\n")


def _after_question(
    renderer: Renderer, opening: Opening, turn_end: TurnEnd, message: Message
) -> str:
    if opening.closes_thinking and (message.get("reasoning_content") or "").strip():
        raise TemplateError(
            "The message has reasoning_content but the template opens turns with a closed, empty "
            "think block: remove the reasoning, or render with thinking enabled."
        )
    rendered = _through_turn_end(renderer, opening, turn_end, message)
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
    opens, closes = map(re.escape, opening.reasoning)
    header = re.sub(rf"{opens}\s*(?:{closes}\s*)?\Z", "", opening.prompt)
    if not rendered.startswith(header):
        raise TemplateError(
            "The generation prompt of the chat template is not how an assistant turn begins: "
            f"{opening.prompt!r} is no beginning of {rendered!r}."
        )
    # Some templates write of reasoning that they leave out what closes it.
    block = re.compile(rf"{opens}.*?{closes}\s*|\A\s*{closes}\s*", re.DOTALL)
    said = block.sub("", rendered[len(header) :], count=1)
    if not opening.opens_thinking:
        return said
    reasoning = (message.get("reasoning_content") or "").strip("\n")
    return f"{reasoning}\n{opening.reasoning[1]}\n\n{said}"


def _ends_with(text: str, opens: str) -> bool:
    return text.rstrip().endswith(opens.rstrip())
