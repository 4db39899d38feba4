"""Messages to tokens and back for one tokenizer, append-only."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from corral.chat.calls import HERMES, CallSyntax
from corral.chat.calls.syntax import Types
from corral.chat.control_tokens import ControlTokens, without_guard
from corral.chat.demonstrated import check_calls_read_back
from corral.chat.image_support import corral_renderer, plain_renderer, tokenizer_and_images
from corral.chat.images import Encoded, ImageReader
from corral.chat.pictures import loaded
from corral.chat.probe import PROBE_TOOL
from corral.chat.proof import prove_prefix_extension
from corral.chat.reading import parse_turn, types_of
from corral.chat.render import Renderer
from corral.chat.suffix import SuffixRenderer
from corral.chat.tokenizer import Tokenizer, encode
from corral.chat.tool_support import tokenizer_renderer
from corral.chat.turn import Opening, find_opening, turn_text
from corral.chat.turn_end import TurnEnd, find_turn_end
from corral.errors import UsageError
from corral.records import Finish, Message, ParsedTurn

MAX_TURNS_KEPT = 4096
"""How many demonstrated turns are kept; those of a game are few, of other data any number."""

_LOOKS_BACK = 64
"""Ids before a turn that may hold what opens its reasoning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatFormat:
    """How one tokenizer writes and reads conversations.

    A conversation is ``prompt_ids``, then in turn the ids the model sampled and ``suffix_ids``;
    nothing is rendered twice and ids are only ever appended. ``turn_ids`` stands in for sampled
    ids where a turn is demonstrated rather than sampled.
    """

    renderer: Renderer
    syntax: CallSyntax
    """How tool calls are written."""
    types: Types
    """What the run's tools take, where ``syntax`` does not write it."""
    opening: Opening
    turn_end: TurnEnd
    suffixes: SuffixRenderer
    control: ControlTokens
    _turns: dict[tuple[str, bool], tuple[int, ...]] = field(default_factory=dict[Any, Any])
    """Demonstrated turns written before, as players of games say the same again and again."""

    @classmethod
    def for_tokenizer(
        cls,
        tokenizer: Tokenizer,
        *,
        template_kwargs: Mapping[str, Any] | None = None,
        tools: Sequence[dict[str, Any]] | None = None,
        extra_stop_ids: Sequence[int] = (),
        needs_tools: bool = True,
    ) -> "ChatFormat":
        """The format of a tokenizer's own template, or ours where that has no place for tools.

        The tokenizer is used as it is and never changed.

        Args:
            tokenizer: Or the multimodal processor of a model that reads images.
            template_kwargs: Extra variables of the template, such as ``enable_thinking``.
            tools: Schemas of the tools the run uses; the proof renders them.
            extra_stop_ids: More ids that end a turn, such as those of a generation config.
            needs_tools: Whether any conversation has tools; without, there is nothing to prove.

        Raises:
            TemplateError: The template cannot be extended turn by turn.
        """
        tokenizer, images = tokenizer_and_images(tokenizer)
        renderer, syntax = _renderer_for(
            tokenizer,
            template_kwargs or {},
            extra_stop_ids,
            needs_tools=needs_tools,
            images=images,
        )
        turn_end = find_turn_end(renderer, extra_stop_ids)
        chat = cls(
            renderer=renderer,
            syntax=syntax,
            types=types_of(tools),
            opening=find_opening(renderer, syntax.reasoning),
            turn_end=turn_end,
            suffixes=SuffixRenderer(renderer, turn_end),
            control=ControlTokens.of(renderer, syntax),
        )
        if needs_tools:
            chat.prove(tools)
        return chat

    @property
    def template(self) -> str | None:
        """Our template's source when it is used, None when the tokenizer's own is.

        Save it next to a trained model, so that others render conversations alike.
        """
        return self.renderer.template

    @property
    def images(self) -> ImageReader | None:
        """What reads images for the model; None for a model that reads text only."""
        return self.renderer.images

    def loaded(self, messages: Sequence[Message]) -> list[Message]:
        """Messages whose pictures are opened, for a model that reads them; see ``pictures``."""
        return list(messages) if self.images is None else loaded(messages)

    @property
    def stop_ids(self) -> frozenset[int]:
        """The ids that end a turn."""
        return self.turn_end.stop_ids

    @property
    def opens_thinking(self) -> bool:
        """Whether the prompt ends inside a reasoning block."""
        return self.opening.opens_thinking

    def prompt_ids(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] | None = None
    ) -> list[int]:
        """The ids of :meth:`prompt`, where no image may be lost."""
        return _without_images(self.prompt(messages, tools))

    def prompt(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] | None = None
    ) -> Encoded:
        """The conversation up to where the model speaks first; images are those of ``loaded``.

        Raises:
            ImageError: The model reads no images and there are some.
        """
        plain, listed = self.control.in_messages(messages), self.control.guarded(tools)
        return self.renderer.encoded(plain, tools=listed, opens_turn=True)

    def suffix_ids(
        self, messages: Sequence[Message], assistant: Message | None = None
    ) -> list[int]:
        """The ids of :meth:`suffix`, where no image may be lost."""
        return _without_images(self.suffix(messages, assistant))

    def suffix(self, messages: Sequence[Message], assistant: Message | None = None) -> Encoded:
        """What follows a sampled turn that ended in a stop token, up to the model's next turn.

        Args:
            messages: The results of all its calls, in order, or a user message.
            assistant: The turn they follow; names the results that don't say which tool they are
                from.

        Raises:
            ImageError: The model reads no images and there are some.
        """
        return self.suffixes.encoded(self.control.in_messages(messages), assistant=assistant)

    def turn_ids(self, message: Message, *, after: Sequence[int] | None = None) -> list[int]:
        """An assistant message as the model would sample it, stop token included.

        Args:
            after: The ids it follows; None: a question.

        Raises:
            TemplateError: The template cannot write the message so that it can be learned, or
                writes its calls so that they read as others.
        """
        thinks = self._begins_thinking(after)
        key = (json.dumps(message, default=repr), thinks)
        if key not in self._turns:
            if len(self._turns) >= MAX_TURNS_KEPT:
                self._turns.clear()
            self._turns[key] = tuple(self._turn_ids(message, thinks))
        return list(self._turns[key])

    def _turn_ids(self, message: Message, thinks: bool) -> list[int]:
        (plain,) = self.control.in_messages([message])
        text = turn_text(self.renderer, self.opening, self.turn_end, plain, is_thinking=thinks)
        ids = encode(self.renderer.tokenizer, text)
        check_calls_read_back(
            message, text, lambda types: replace(self, types=types)._read(ids, thinks)
        )
        return ids

    def parse(
        self,
        ids: Sequence[int],
        *,
        finish: Finish,
        after: Sequence[int] | None = None,
    ) -> ParsedTurn:
        """What a sampled turn says; never raises, whatever the model wrote.

        Where the tokenizer has a token for a marker, the id is the marker; letters that spell it
        are text.

        Args:
            after: The ids it was sampled after, which may end in the opening of a reasoning block;
                None: those of a question.
        """
        return self._read(ids, self._begins_thinking(after), finish is Finish.LENGTH)

    def _read(
        self, ids: Sequence[int], is_thinking: bool, is_truncated: bool = False
    ) -> ParsedTurn:
        is_ended = bool(ids) and ids[-1] in self.stop_ids
        turn = parse_turn(
            self.control.read(ids[:-1] if is_ended else ids),
            syntax=self.syntax,
            types=self.types,
            opens_thinking=is_thinking,
            is_truncated=is_truncated,
        )
        return without_guard(turn)

    def _begins_thinking(self, after: Sequence[int] | None) -> bool:
        if after is None:
            return self.opens_thinking
        return self.opening.opens_thinking_after(self.control.read(after[-_LOOKS_BACK:]))

    def prove(self, tools: Sequence[dict[str, Any]] | None = None) -> None:
        """Show that conversations can be extended turn by turn, or raise TemplateError."""
        prove_prefix_extension(
            self.renderer,
            self.opening,
            self.turn_end,
            self.suffixes,
            [*(tools or ()), PROBE_TOOL],
        )


def _without_images(encoded: Encoded) -> list[int]:
    if encoded.images:
        raise UsageError("These messages have images: where only their ids are used, none may be.")
    return encoded.ids


def _renderer_for(
    tokenizer: Tokenizer,
    options: Mapping[str, Any],
    extra_stop_ids: Sequence[int],
    *,
    needs_tools: bool,
    images: ImageReader | None,
) -> tuple[Renderer, CallSyntax]:
    if tokenizer.chat_template and not needs_tools:
        return plain_renderer(tokenizer, options, images), HERMES
    theirs = tokenizer_renderer(tokenizer, options, extra_stop_ids, images=images)
    if theirs is not None:
        return theirs
    return corral_renderer(tokenizer, options, images), HERMES
