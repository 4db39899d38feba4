"""Whether a tokenizer's own template has a place for tools, and how it wants calls spelled."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from corral.chat.probe import (
    PROBE_DESCRIPTION,
    PROBE_KEY,
    PROBE_TOOL,
    probe_call,
    probe_result,
    probe_value,
)
from corral.chat.render import Renderer
from corral.chat.tokenizer import Tokenizer
from corral.errors import TemplateError
from corral.records import Message

_CONVERSATION: Sequence[Message] = (
    {"role": "user", "content": "dummy"},
    probe_call(0),
    probe_result(0),
)
_WELL_FORMED = re.compile(rf'"{PROBE_KEY}"\s*:\s*"{probe_value(0)}"')


def tokenizer_renderer(tokenizer: Tokenizer, options: Mapping[str, Any]) -> Renderer | None:
    """A renderer that gives the tokenizer's template calls the way it wants them.

    Returns:
        None when there is no template, or one without a place for tools.

    Raises:
        TemplateError: The template lists tools, but fails on a conversation that uses them; or it
            fails altogether.
    """
    if not tokenizer.chat_template:
        return None
    failures: list[TemplateError] = []
    possible: list[Renderer] = []
    for dialect in _dialects(tokenizer, options):
        try:
            text = dialect.text(_CONVERSATION, tools=[PROBE_TOOL])
        except TemplateError as error:
            failures.append(error)
            continue
        if _WELL_FORMED.search(text) and _shows_all(text):
            return dialect
        if _shows_all(text):
            possible.append(dialect)
    if possible:
        return possible[0]
    plain = Renderer(tokenizer=tokenizer, template=None, options=options)
    listing = plain.text(_CONVERSATION[:1], tools=[PROBE_TOOL], opens_turn=True)
    if failures and PROBE_DESCRIPTION in listing:
        raise failures[0]
    return None


def _dialects(tokenizer: Tokenizer, options: Mapping[str, Any]) -> list[Renderer]:
    return [
        Renderer(
            tokenizer=tokenizer,
            template=None,
            options=options,
            arguments_as_text=arguments_as_text,
            call_ids=call_ids,
        )
        for call_ids in (False, True)
        for arguments_as_text in (False, True)
    ]


def _shows_all(text: str) -> bool:
    result = str(probe_result(0)["content"])
    return all(word in text for word in (PROBE_DESCRIPTION, PROBE_KEY, probe_value(0), result))
