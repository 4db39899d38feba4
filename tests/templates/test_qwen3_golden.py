"""Ids equal to those of the real Qwen3 tokenizer and template."""

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from corral.chat import ChatFormat
from corral.records import Finish, Message, ToolCall

RESULT: Message = {"role": "tool", "name": "guess", "content": "C R A N E\nX G Y X X"}


@pytest.fixture(scope="module")
def golden(test_data: Path) -> dict[str, Any]:
    return json.loads((test_data / "golden" / "qwen3_chat.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tokenizer(test_data: Path) -> Any:
    return AutoTokenizer.from_pretrained(test_data / "tokenizers" / "qwen3")


def chat_for(tokenizer: Any, golden: dict[str, Any], thinking: bool) -> ChatFormat:
    options = {} if thinking else {"enable_thinking": False}
    return ChatFormat.for_tokenizer(tokenizer, template_kwargs=options, tools=golden["tools"])


@pytest.mark.parametrize("index", range(4))
@pytest.mark.contract(22)
def test_prompt_and_suffix_ids_equal_the_reference(
    tokenizer: Any, golden: dict[str, Any], index: int
) -> None:
    case = golden["cases"][index]
    chat = chat_for(tokenizer, golden, case["thinking"])
    assert chat.template is None
    assert chat.prompt_ids(case["messages"], golden["tools"]) == case["prompt_ids"]
    assert chat.suffix_ids([RESULT]) == case["after_call_ids"]
    assert chat.suffix_ids([RESULT, RESULT]) == case["two_results_ids"]


def test_a_demonstrated_turn_reads_back_as_itself(tokenizer: Any, golden: dict[str, Any]) -> None:
    chat = chat_for(tokenizer, golden, thinking=True)
    message: Message = {
        "role": "assistant",
        "content": "Let me see.",
        "reasoning_content": "Common letters first.",
        "tool_calls": [ToolCall(name="guess", arguments={"word": "Zürich 🙂"}).as_message_part()],
    }
    ids = chat.turn_ids(message)
    assert tokenizer.decode(ids) == (
        "<think>\nCommon letters first.\n</think>\n\nLet me see.\n<tool_call>\n"
        '{"name": "guess", "arguments": {"word": "Zürich 🙂"}}\n</tool_call><|im_end|>'
    )
    assert chat.parse(ids, finish=Finish.STOP).as_message() == message


def test_without_thinking_the_empty_think_block_belongs_to_the_prompt(
    tokenizer: Any, golden: dict[str, Any]
) -> None:
    chat = chat_for(tokenizer, golden, thinking=False)
    ids = chat.turn_ids({"role": "assistant", "content": "Done."})
    assert tokenizer.decode(ids) == "Done.<|im_end|>"
    assert not chat.opens_thinking
