"""The proof that a template can be extended turn by turn, on a dummy tool conversation."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from corral.chat.probe import probe_call, probe_result, probe_tool_call, probe_value
from corral.chat.reading import THINK_CLOSE, THINK_OPEN
from corral.chat.render import Renderer
from corral.chat.suffix import SuffixRenderer
from corral.chat.tokenizer import encode, first_difference
from corral.chat.turn import Opening, turn_text
from corral.chat.turn_end import TurnEnd
from corral.errors import TemplateError
from corral.records import Message

LONG = 24
"""Turns of the longer conversations: a template may forget what is some messages back."""

_ASKED: Sequence[Message] = ({"role": "user", "content": "dummy"},)
_WITH_SYSTEM: Sequence[Message] = ({"role": "system", "content": "dummy"}, *_ASKED)


def prove_prefix_extension(
    renderer: Renderer,
    opening: Opening,
    turn_end: TurnEnd,
    suffixes: SuffixRenderer,
    tools: Sequence[dict[str, Any]],
) -> None:
    """Build a three-turn conversation by appending and compare it with the template's own.

    Two things must hold. Apart from reasoning, which many templates drop from history, the
    appended text is the rendered text. And at each boundary between a sampled turn and what
    follows it, the appended ids are the ids of the rendered text. The first must hold of long
    conversations, too, of those with a system message and of those with several calls a turn,
    where the template has a place for them.

    Raises:
        TemplateError: They differ; the message shows the first differing tokens.
    """
    tokenizer = renderer.tokenizer
    messages: list[Message] = [*_ASKED]
    appended = renderer.text(messages, tools=tools, opens_turn=True)
    for turn in range(2):
        said = _said(opening, turn)
        heard = probe_result(turn)
        messages += [said, heard]
        is_thinking = opening.opens_thinking_after(appended)
        appended += turn_text(renderer, opening, turn_end, said, is_thinking=is_thinking)
        appended += suffixes.text([heard])
        rendered = renderer.text(messages, tools=tools, opens_turn=True)
        _compare_text(renderer, rendered, appended, opening.reasoning)

        anchor = rendered.rindex(probe_value(turn))
        end = turn_end.first_after(rendered, anchor)
        before = rendered[:end]
        expected = encode(tokenizer, before) + suffixes.ids([heard])
        difference = first_difference(tokenizer, expected, encode(tokenizer, rendered))
        if difference:
            raise TemplateError(
                "Ids appended after a sampled turn are not the ids of the rendered conversation: "
                f"{difference}."
            )

    written = _Appended(renderer, opening, turn_end, suffixes, tools)
    written.compare_long(_ASKED, calls=1)
    if not written.compare_long(_WITH_SYSTEM, calls=2):
        written.compare_long(_WITH_SYSTEM, calls=1)
        written.compare_long(_ASKED, calls=2)


def without_thoughts(text: str, reasoning: tuple[str, str] = (THINK_OPEN, THINK_CLOSE)) -> str:
    """A conversation without its reasoning, which many templates drop from history.

    Some leave what closes it.
    """
    opens, closes = map(re.escape, reasoning)
    return re.sub(rf"(?:{opens}.*?)?{closes}\n*", "", text, flags=re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Appended:
    """Conversations made by appending."""

    renderer: Renderer
    opening: Opening
    turn_end: TurnEnd
    suffixes: SuffixRenderer
    tools: Sequence[dict[str, Any]]

    def compare_long(self, asked: Sequence[Message], *, calls: int) -> bool:
        """Compare a conversation of ``LONG`` alike turns, each with so many calls.

        Returns:
            Whether the template has a place for such a conversation.
        """
        said = _said(self.opening, 0)
        said["tool_calls"] = [probe_tool_call(turn) for turn in range(calls)]
        heard = [probe_result(turn) for turn in range(calls)]
        try:
            whole = self._rendered([*asked, *[said, *heard] * LONG])
            appended = self._rendered(asked)
            suffix = self.suffixes.text(heard, assistant=said)
            turns = [self._turn(said, after=text) for text in (appended, suffix)]
        except TemplateError:
            return False
        if not all(probe_value(turn) in turns[0] for turn in range(calls)):
            return False  # the template writes the first call only
        appended += turns[0] + suffix + (turns[1] + suffix) * (LONG - 1)
        _compare_text(self.renderer, whole, appended, self.opening.reasoning)
        return True

    def _rendered(self, messages: Sequence[Message]) -> str:
        return self.renderer.text(messages, tools=self.tools, opens_turn=True)

    def _turn(self, said: Message, *, after: str) -> str:
        is_thinking = self.opening.opens_thinking_after(after)
        return turn_text(self.renderer, self.opening, self.turn_end, said, is_thinking=is_thinking)


def _said(opening: Opening, turn: int) -> Message:
    message = probe_call(turn)
    if not opening.closes_thinking:
        message["reasoning_content"] = "Thought."
    return message


def _compare_text(
    renderer: Renderer, rendered: str, appended: str, reasoning: tuple[str, str]
) -> None:
    plain_rendered = without_thoughts(rendered, reasoning)
    plain_appended = without_thoughts(appended, reasoning)
    if plain_rendered == plain_appended:
        return
    tokenizer = renderer.tokenizer
    difference = first_difference(
        tokenizer, encode(tokenizer, plain_rendered), encode(tokenizer, plain_appended)
    )
    raise TemplateError(
        "The chat template is not prefix-extending: a conversation that grows turn by turn is "
        f"rendered differently later ({difference or 'same ids, different text'}). Use a template "
        "that renders earlier turns alike."
    )
