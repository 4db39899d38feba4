"""Control tokens, told apart from text that merely spells them.

``<|im_end|>`` may be one id that ends a turn, or ten characters of a web page that a tool returned.
What others wrote must never become control ids, and what a model spelled letter by letter is no
marker. So a ``GUARD`` is put inside such a spelling: no template, parser or tokenizer then takes it
for the token, ``encode`` cuts the text there, and ``without_guard`` takes it out of what was read.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

from corral.chat.calls.syntax import CallSyntax
from corral.chat.probe import PROBE_TOOL, probe_call, probe_result
from corral.chat.render import Renderer, plain_content
from corral.chat.tokenizer import GUARD, Tokenizer, decode, encode
from corral.errors import TemplateError
from corral.records import MalformedCall, Message, ParsedTurn, ToolCall

Value = TypeVar("Value")

_QUESTION: Message = {"role": "user", "content": "dummy"}
_CALLING: Message = {**probe_call(0), "reasoning_content": "dummy"}
_ANSWER: Message = {"role": "assistant", "content": "dummy", "reasoning_content": "dummy"}
_CONVERSATIONS: Sequence[Sequence[Message]] = (
    [_QUESTION, _CALLING, probe_result(0)],
    [_QUESTION, _ANSWER],
    [_QUESTION],
)


@dataclass(frozen=True)
class ControlTokens:
    """The tokens of one chat format that are more than their text."""

    tokenizer: Tokenizer
    texts: Mapping[int, str]
    """By id."""

    @classmethod
    def of(cls, renderer: Renderer, syntax: CallSyntax) -> "ControlTokens":
        """Those flagged as special, those the template writes, and the tags of calls and reasoning.

        Other added tokens, such as the HTML tags and runs of spaces that some vocabularies have,
        are ordinary text.
        """
        tokenizer = renderer.tokenizer
        # Most tokenizers say here which tokens are special; all_special_ids has only the named.
        added: Mapping[int, Any] = getattr(tokenizer, "added_tokens_decoder", {})
        special = {token for token, about in added.items() if about.special}
        special |= set(tokenizer.all_special_ids)
        if renderer.images is not None:
            special.add(renderer.images.token_id)
        # A tag may be several tokens, and the template writes ordinary ones as well.
        tags = (*syntax.reasoning, syntax.closes)
        used = {token for tag in tags for token in encode(tokenizer, tag)} | _written(renderer)
        known = special | (used & {*added, *tokenizer.get_added_vocab().values()})
        texts = {token: decode(tokenizer, [token]) for token in known}
        return cls(tokenizer, {token: text for token, text in texts.items() if text.strip()})

    def in_messages(self, messages: Sequence[Message]) -> list[Message]:
        """Messages in which everything that others wrote is plain text; nothing is mutated.

        That is what users, tools and environments said, and the arguments of calls. The text of
        an assistant is what a model samples, markers included, and a system message is the run's
        own, unless an observation was joined to it.
        """
        last = len(messages) - 1
        return [
            message if message["role"] == "system" and index < last else self._in_message(message)
            for index, message in enumerate(messages)
        ]

    def guarded(self, value: Value) -> Value:
        """Text, or all texts of a nested value, with a guard in each spelled control token."""
        return _mapped(value, self._guarded)

    def read(self, ids: Sequence[int]) -> str:
        """Sampled ids as text, with a guard in each control token that ordinary ids spell."""
        text = decode(self.tokenizer, ids)
        found = self._pattern.findall(text)
        if len(found) == sum(token in self.texts for token in ids):
            return text
        return "".join(self._by_runs(ids))

    def _by_runs(self, ids: Sequence[int]) -> list[str]:
        pieces: list[str] = []
        run: list[int] = []
        before: list[int] = []
        for token in [*ids, None]:
            if token is not None and token not in self.texts:
                run.append(token)
                continue
            # Decoded after its neighbour: some tokenizers drop a space where a text begins.
            skipped = len(self.texts[before[0]]) if before else 0
            pieces.append(self._guarded(decode(self.tokenizer, [*before, *run])[skipped:]))
            if token is not None:
                pieces.append(self.texts[token])
                before, run = [token], []
        return pieces

    def _in_message(self, message: Message) -> Message:
        plain: dict[str, Any] = dict(message)
        if message["role"] == "assistant":
            given = ["tool_calls"] if "tool_calls" in message else []
        else:
            given = [key for key in plain if key not in ("role", "content")]
            plain["content"] = self._in_content(message.get("content"))
        return cast("Message", {**plain, **{key: self.guarded(plain[key]) for key in given}})

    def _in_content(self, content: object) -> object:
        """Text or content blocks; of blocks only the texts are touched."""
        content = plain_content(content)
        if isinstance(content, str):
            return self._guarded(content)
        if not isinstance(content, list):
            return content
        blocks: list[Any] = []
        before = ""
        for block in cast("list[Any]", content):
            fields = cast("Mapping[str, Any]", block if isinstance(block, Mapping) else {})
            text = fields.get("text")
            if not isinstance(text, str):
                blocks.append(block)
                before = ""
                continue
            text = self._guarded(text)
            if self._pattern.search(before + text):  # begun in one block, ended in the next
                text = GUARD + text
            blocks.append({**fields, "text": text})
            before += text
        return blocks

    def _guarded(self, text: str) -> str:
        text = text.replace(GUARD, "\ufffd")
        return self._pattern.sub(lambda found: f"{found[0][0]}{GUARD}{found[0][1:]}", text)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self.texts.values(), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def without_guard(turn: ParsedTurn) -> ParsedTurn:
    """What was read, as it was written."""
    return ParsedTurn(
        content=_plain(turn.content),
        reasoning=None if turn.reasoning is None else _plain(turn.reasoning),
        calls=tuple(_plain_call(call) for call in turn.calls),
    )


def _plain_call(call: ToolCall | MalformedCall) -> ToolCall | MalformedCall:
    if isinstance(call, MalformedCall):
        error = call.error.replace(repr(GUARD)[1:-1], "")
        return MalformedCall(text=_plain(call.text), error=_plain(error))
    return ToolCall(name=_plain(call.name), arguments=_mapped(call.arguments, _plain))


def _plain(text: str) -> str:
    return text.replace(GUARD, "")


def _mapped(value: Value, change: Callable[[str], str]) -> Value:
    """A nested value with all its texts changed, keys of mappings too."""
    given: Any = value
    changed: Any = given
    if isinstance(given, str):
        changed = change(given)
    elif isinstance(given, dict):
        fields = cast("dict[Any, Any]", given)
        changed = {_mapped(key, change): _mapped(each, change) for key, each in fields.items()}
    elif isinstance(given, list | tuple):
        changed = [_mapped(each, change) for each in cast("Sequence[Any]", given)]
    return changed


def _written(renderer: Renderer) -> set[int]:
    """All ids that the template writes around contents."""
    written: set[int] = set()
    for messages in _CONVERSATIONS:
        try:
            written.update(renderer.ids(messages, tools=[PROBE_TOOL]))
        except TemplateError:
            continue  # not every template has a place for tools, or for this order of messages
        written.update(renderer.ids(messages, tools=[PROBE_TOOL], opens_turn=True))
    return written
