"""The tokens that follow a sampled turn: tool results, and what opens the next turn.

History is never rendered again. A dummy conversation with the same tools is rendered, and what
stands in it after the assistant's stop token is the suffix: the real conversation has that stop
token already, sampled by the model. The text around the results depends on the tools' names only
and is kept, so that a turn costs the tokenisation of its results and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from corral.chat.images import Encoded
from corral.chat.render import Renderer, plain_content
from corral.chat.tokenizer import encode, first_difference
from corral.chat.turn_end import PROBE_TEXT, TurnEnd
from corral.errors import TemplateError, UsageError
from corral.records import Message, ToolCall

_AWKWARD = ' "{}":\n\\é\'<b> '
"""Added to probe contents, to see whether a template renders contents as they are."""

MAX_KEPT = 256
"""How many combinations of tools are kept; a model can invent any number of names."""

_Key = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class SuffixRenderer:
    """Makes suffixes for one template."""

    renderer: Renderer
    turn_end: TurnEnd
    tools: Sequence[dict[str, Any]] | None = None
    _pieces: dict[_Key, tuple[str, ...] | None] = field(default_factory=dict[Any, Any])
    """Text around the contents, by roles and names; None where contents are not left as is."""

    def ids(self, messages: Sequence[Message], *, assistant: Message | None = None) -> list[int]:
        """The ids of :meth:`encoded`."""
        return self.encoded(messages, assistant=assistant).ids

    def encoded(self, messages: Sequence[Message], *, assistant: Message | None = None) -> Encoded:
        """The ids between the stop token of a sampled turn and where the model speaks again.

        Encoded after the stop token, whose neighbours never merge with it.
        """
        text = self.text(messages, assistant=assistant)
        tokenizer, stop = self.renderer.tokenizer, self.turn_end
        ids, images = self.renderer.encode(stop.text + text, messages)
        if ids[:1] != [stop.token]:
            alone = [stop.token, *encode(tokenizer, text)]
            raise TemplateError(
                f"The stop token {stop.text!r} merges with the text after it, so a sampled turn "
                f"cannot be extended: {first_difference(tokenizer, alone, ids)}."
            )
        return Encoded(ids[1:], tuple(image.moved(-1) for image in images))

    def kept(self) -> int:
        """How many combinations of tools are remembered."""
        return len(self._pieces)

    def text(self, messages: Sequence[Message], *, assistant: Message | None = None) -> str:
        """The suffix as text."""
        if not messages:
            raise UsageError("There is no message to append after the assistant's turn.")
        messages = _named(messages, assistant)
        key = tuple((message["role"], message.get("name", "")) for message in messages)
        if key not in self._pieces:
            if len(self._pieces) >= MAX_KEPT:
                self._pieces.clear()
            self._pieces[key] = self._find_pieces(messages)
        pieces = self._pieces[key]
        contents = [plain_content(message.get("content")) for message in messages]
        if pieces is None or not all(isinstance(content, str) for content in contents):
            return self._rendered(messages)
        joined = [f"{content}{piece}" for content, piece in zip(contents, pieces[1:], strict=True)]
        return pieces[0] + "".join(joined)

    def _find_pieces(self, messages: Sequence[Message]) -> tuple[str, ...] | None:
        plain = [f"{PROBE_TEXT}result{index}" for index in range(len(messages))]
        text = self._rendered(_with_contents(messages, plain))
        pieces: list[str] = []
        for content in plain:
            before, found, text = text.partition(content)
            if not found:
                raise TemplateError(
                    "The chat template leaves out or reorders the tool results; "
                    f"a result is missing after {before!r}."
                )
            pieces.append(before)
        pieces.append(text)
        wrapped = [(_AWKWARD, _AWKWARD), ("{" + _AWKWARD, _AWKWARD + "}"), ("", " long" * 4000)]
        tries = [[before + content + after for content in plain] for before, after in wrapped]
        for awkward in ([""] * len(plain), *tries):
            expected = pieces[0] + "".join(
                content + piece for content, piece in zip(awkward, pieces[1:], strict=True)
            )
            if self._rendered(_with_contents(messages, awkward)) != expected:
                return None
        return tuple(pieces)

    def _rendered(self, messages: Sequence[Message]) -> str:
        """Render a dummy conversation with ``messages`` and cut it after the dummy's turn."""
        text = self._rendered_dummy(messages)
        anchor = text.find(PROBE_TEXT)
        end = self.turn_end.first_after(text, anchor) if anchor >= 0 else None
        if end is None:
            raise TemplateError(
                "The chat template does not end the assistant's turn with a stop token before a "
                f"tool result: it renders {text!r}, the stop tokens are "
                f"{', '.join(map(repr, self.turn_end.stop_texts))}."
            )
        return text[end:]

    def _rendered_dummy(self, messages: Sequence[Message]) -> str:
        failure: TemplateError | None = None
        text: str | None = None
        for dummy in _dummies(messages):
            try:
                text = self.renderer.text(dummy, tools=self.tools, opens_turn=True)
            except TemplateError as error:
                failure = failure or error
                continue
            # A template for one call a turn may drop the others, and the probe with them, silently.
            if PROBE_TEXT in text.replace(f"{PROBE_TEXT}result", ""):
                return text
        if text is not None:
            return text
        assert failure is not None
        raise failure


def _named(messages: Sequence[Message], assistant: Message | None) -> list[Message]:
    """Results with the names of the calls they answer, and without ids.

    Ids tie a result to a call of the real turn, and the dummy turn has other calls.
    """
    calls = assistant.get("tool_calls", []) if assistant else []
    names = [str(call.get("function", call).get("name", "")) for call in calls or []]
    named: list[Message] = []
    for message in messages:
        plain = cast("Any", {k: v for k, v in message.items() if k != "tool_call_id"})
        if message["role"] == "tool":
            name = names.pop(0) if names else ""
            if name and not message.get("name"):
                plain["name"] = name
        named.append(plain)
    return named


def _with_contents(messages: Sequence[Message], contents: Sequence[str]) -> list[Message]:
    return [
        {**message, "content": content} for message, content in zip(messages, contents, strict=True)
    ]


def _dummies(messages: Sequence[Message]) -> list[list[Message]]:
    """Conversations that may precede ``messages``: a call for each result, or a single one.

    Strict templates reject a result that no call precedes, and some allow one call a turn.
    """
    names = [message.get("name") or "dummy" for message in messages if message["role"] == "tool"]
    counts = [len(names), 1] if len(names) > 1 else [len(names)]
    return [[*_dummy(names[:count]), *messages] for count in counts]


def _dummy(names: Sequence[str]) -> list[Message]:
    question: Message = {"role": "user", "content": "dummy"}
    if not names:
        return [question, {"role": "assistant", "content": PROBE_TEXT}]
    # The probe stands in the last call: the first stop token after it ends the turn.
    arguments: list[dict[str, Any]] = [{} for _ in names]
    arguments[-1]["probe"] = PROBE_TEXT
    calls = [
        ToolCall(name=name, arguments=given).as_message_part()
        for name, given in zip(names, arguments, strict=True)
    ]
    return [question, {"role": "assistant", "content": "", "tool_calls": calls}]
