"""Whether a tokenizer's own template has a place for tools, and how it wants calls spelled."""

from collections.abc import Mapping, Sequence
from typing import Any

from corral.chat.calls import SYNTAXES, CallSyntax
from corral.chat.images import ImageReader
from corral.chat.probe import (
    PROBE_DESCRIPTION,
    PROBE_KEY,
    PROBE_NAME,
    PROBE_TOOL,
    probe_call,
    probe_result,
    probe_value,
)
from corral.chat.reading import parse_turn, types_of
from corral.chat.render import Renderer
from corral.chat.tokenizer import Tokenizer
from corral.chat.turn_end import find_turn_end
from corral.errors import TemplateError
from corral.records import Message, ToolCall

_CONVERSATION: Sequence[Message] = (
    {"role": "user", "content": "dummy"},
    probe_call(0),
    probe_result(0),
)
_CALLS = (ToolCall(name=PROBE_NAME, arguments={PROBE_KEY: probe_value(0)}),)


def tokenizer_renderer(
    tokenizer: Tokenizer,
    options: Mapping[str, Any],
    extra_stop_ids: Sequence[int] = (),
    *,
    images: ImageReader | None = None,
) -> tuple[Renderer, CallSyntax] | None:
    """A renderer that gives the tokenizer's template calls the way it wants them, and their syntax.

    Both are found by trying: what the template makes of a call must read as that call.

    Returns:
        None when there is no template, or one without a place for tools.

    Raises:
        TemplateError: The template lists tools, but fails on a conversation that uses them, or
            writes calls in no known way; or it fails altogether.
    """
    if not tokenizer.chat_template:
        return None
    failures: list[TemplateError] = []
    unread: list[str] = []
    for dialect in _dialects(tokenizer, options, images):
        try:
            text = dialect.text(_CONVERSATION, tools=[PROBE_TOOL])
        except TemplateError as error:
            failures.append(error)
            continue
        if not _shows_all(text):
            continue
        try:
            turn = _called(dialect, extra_stop_ids)
        except TemplateError as error:
            failures.append(error)
            continue
        syntax = _syntax_of(turn)
        if syntax is not None:
            return dialect, syntax
        unread.append(turn)
    if unread:
        known = ", ".join(syntax.name for syntax in SYNTAXES)
        raise TemplateError(
            f"The chat template writes a tool call as {unread[0]!r}, which Corral cannot read. "
            f"It reads these ways to write calls: {known}."
        )
    plain = Renderer(tokenizer=tokenizer, template=None, options=options, images=images)
    listing = plain.text(_CONVERSATION[:1], tools=[PROBE_TOOL], opens_turn=True)
    if failures and PROBE_DESCRIPTION in listing:
        raise failures[0]
    return None


def _called(renderer: Renderer, extra_stop_ids: Sequence[int]) -> str:
    """What a turn that calls the dummy tool looks like, without its stop token."""
    prompt = renderer.text(_CONVERSATION[:1], tools=[PROBE_TOOL], opens_turn=True)
    whole = renderer.text(_CONVERSATION, tools=[PROBE_TOOL])
    pairs = zip(prompt, whole, strict=False)
    start = next((at for at, (one, other) in enumerate(pairs) if one != other), len(prompt))
    opened = whole.rfind("<", 0, start)
    if opened >= 0 and ">" not in whole[opened:start]:
        start = opened  # the tags of reasoning and of a call begin alike
    turn_end = find_turn_end(renderer, extra_stop_ids)
    return turn_end.before(whole, whole.index(probe_value(0), start))[start:]


def _syntax_of(turn: str) -> CallSyntax | None:
    for syntax in SYNTAXES:
        calls = parse_turn(turn, syntax=syntax, types=types_of([PROBE_TOOL])).calls
        if calls == _CALLS:
            return syntax
    return None


def _dialects(
    tokenizer: Tokenizer, options: Mapping[str, Any], images: ImageReader | None
) -> list[Renderer]:
    return [
        Renderer(
            tokenizer=tokenizer,
            template=None,
            options=options,
            arguments_as_text=arguments_as_text,
            call_ids=call_ids,
            content_as_blocks=content_as_blocks,
            images=images,
        )
        for content_as_blocks in ((False,) if images is None else (False, True))
        for call_ids in (False, True)
        for arguments_as_text in (False, True)
    ]


def _shows_all(text: str) -> bool:
    result = str(probe_result(0)["content"])
    return all(word in text for word in (PROBE_DESCRIPTION, PROBE_KEY, probe_value(0), result))
