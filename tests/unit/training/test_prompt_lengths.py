"""Prompts that fill the context are found where few prompts need to be tokenised."""

from typing import Any

import pytest

from corral.chat import ChatFormat
from corral.env import tools_of
from corral.training import prompt_lengths
from corral.training.prompt_lengths import too_long
from support.tiny_models import tiny_tokenizer

NO_TOOLS = tools_of(())


def long_tool(a: str) -> str:
    """Describe at length.

    Args:
        a: Something.
    """
    return a


TOOLS = tools_of([long_tool])


@pytest.fixture(scope="module")
def chat() -> ChatFormat:
    return ChatFormat.for_tokenizer(tiny_tokenizer())


def length(chat: ChatFormat, text: str, tools: Any = NO_TOOLS) -> int:
    return len(chat.prompt([{"role": "user", "content": text}], tools.schemas or None).ids)


def test_a_prompt_is_too_long_when_no_token_is_left_to_answer_with(chat: ChatFormat) -> None:
    talk = [{"role": "user", "content": "ä" * 100}]
    exact = length(chat, "ä" * 100)
    for context, expected in [(exact + 1, {}), (exact, {1: exact})]:
        rows = [{"prompt": "Go."}, {"prompt": talk}]
        assert too_long(rows, {None: NO_TOOLS}, chat, context) == expected


def test_tools_count_where_the_row_shows_them(chat: ChatFormat) -> None:
    rows = [{"environment": "a", "prompt": "Go."}, {"environment": "b", "prompt": "Go."}]
    context = length(chat, "Go.", TOOLS)
    assert too_long(rows, {"a": NO_TOOLS, "b": TOOLS}, chat, context) == {1: context}


def test_short_prompts_are_not_tokenised(chat: ChatFormat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt_lengths, "_row_tokens", lambda *_: pytest.fail("tokenised"))
    assert too_long([{"prompt": "Go."}] * 1000, {None: NO_TOOLS}, chat, 4096) == {}
