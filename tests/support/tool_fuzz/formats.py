"""One chat format for every way to write calls that is registered."""

from functools import cache
from typing import Any

from corral.chat import ChatFormat
from corral.chat.tool_support import tokenizer_renderer
from corral.env import prepare
from corral.errors import TemplateError
from support.family_templates import CASES, family_tokenizer
from support.tool_fuzz.bench import Bench, plain
from support.toy_tokenizers import CHATML_MARKERS, byte_level_tokenizer
from support.trl_templates import dress, template_files

MERGES = [("x" * 2**power, "x" * 2**power) for power in range(8)]
"""Texts of a megabyte are x's, and must not be a million ids."""


@cache
def chat_formats() -> dict[str, ChatFormat]:
    """By name of the syntax, each with a template that models use; further forms of a syntax by the
    name of their family."""
    kind = prepare(Bench, standalone=[plain])
    found: dict[str, ChatFormat] = {}
    for file in template_files():
        try:
            tokenizer = _tokenizer()
            stops = dress(tokenizer, file)
            written = tokenizer_renderer(tokenizer, {}, stops)
            if written is None or written[1].name in found:
                continue
            chat = ChatFormat.for_tokenizer(
                tokenizer, tools=kind.tools.schemas, extra_stop_ids=stops
            )
        except TemplateError:
            continue
        found.setdefault(chat.syntax.name, chat)
    for name in CASES:
        tokenizer, stops = family_tokenizer(name, merges=MERGES)
        chat = ChatFormat.for_tokenizer(tokenizer, tools=kind.tools.schemas, extra_stop_ids=stops)
        found[chat.syntax.name if chat.syntax.name not in found else name] = chat
    return found


def _tokenizer() -> Any:
    markers = (*CHATML_MARKERS, "<tool_call>", "</tool_call>")
    return byte_level_tokenizer(markers=markers, merges=MERGES)
