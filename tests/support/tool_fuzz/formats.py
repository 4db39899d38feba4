"""One chat format for every way to write calls that is registered."""

from dataclasses import replace
from functools import cache
from typing import Any

from corral.chat import ChatFormat
from corral.chat.calls import SYNTAXES
from corral.chat.control_tokens import ControlTokens
from corral.chat.tool_support import tokenizer_renderer
from corral.env import prepare
from corral.errors import TemplateError
from support.template_zoo import template
from support.tool_fuzz.bench import Bench, plain
from support.toy_tokenizers import CHATML_MARKERS, byte_level_tokenizer
from support.trl_templates import dress, template_files

MERGES = [("x" * 2**power, "x" * 2**power) for power in range(8)]
"""Texts of a megabyte are x's, and must not be a million ids."""


@cache
def chat_formats() -> dict[str, ChatFormat]:
    """By name of the syntax: with a template that models use, where the ``trl`` package has one."""
    kind = prepare(Bench, standalone=[plain])
    found: dict[str, ChatFormat] = {}
    for file in template_files():
        try:
            tokenizer = _tokenizer(None)
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
    base = ChatFormat.for_tokenizer(_tokenizer(template(grouped=True)), tools=kind.tools.schemas)
    for syntax in SYNTAXES:
        control = ControlTokens.of(base.renderer, syntax)
        found.setdefault(syntax.name, replace(base, syntax=syntax, control=control))
    return {syntax.name: found[syntax.name] for syntax in SYNTAXES}


def _tokenizer(chat_template: str | None) -> Any:
    markers = (*CHATML_MARKERS, "<tool_call>", "</tool_call>")
    return byte_level_tokenizer(chat_template=chat_template, markers=markers, merges=MERGES)
