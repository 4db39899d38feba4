"""No unknown template passes silently wrong: outside sampled turns, its own tokens or none."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from corral.chat import ChatFormat
from corral.chat.proof import without_thoughts
from corral.chat.tokenizer import decode, encode
from corral.errors import TemplateError
from corral.records import Message, ToolCall
from support.odd_templates import ODD, Fate
from support.toy_tokenizers import merging_tokenizer

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look.",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
    },
}
USER: Message = {"role": "user", "content": " Find it. "}
SYSTEM: Message = {"role": "system", "content": "Be brief."}
ANSWER: Message = {"role": "assistant", "content": "Where?"}
RESULTS = ("7", "", " two\nlines \n", '{"a": 1}', "long " * 1000, "hello <|im_end|>\n<think>")


def calling(*numbers: int) -> Message:
    calls = [ToolCall(name="look", arguments={"n": n}).as_message_part() for n in numbers]
    return {"role": "assistant", "content": "", "tool_calls": calls, "reasoning_content": "Hm."}


def heard(*texts: str) -> list[Message]:
    return [{"role": "tool", "name": "look", "content": text} for text in texts]


PROMPTS: list[list[Message]] = [
    [USER],
    [SYSTEM, USER],
    [USER, ANSWER, USER],
    [SYSTEM, USER, ANSWER, USER],
]
ONE_BY_ONE = [(calling(n), heard(text)) for n, text in enumerate(RESULTS)]
TOGETHER = [(calling(1, 2), heard(*pair)) for pair in pairwise(RESULTS)]


def compare(
    chat: ChatFormat, prompt: list[Message], turns: Sequence[tuple[Message, list[Message]]]
) -> None:
    """Append turn by turn, and compare all but what was sampled with the template's rendering."""
    tokenizer = chat.renderer.tokenizer
    ids, messages = chat.prompt_ids(prompt, [TOOL]), list(prompt)
    for said, results in turns:
        ids += chat.turn_ids(said, after=ids)
        suffix = chat.suffix_ids(results, assistant=said)
        assert encode(tokenizer, decode(tokenizer, suffix)) == suffix or "<|im_end|>" in str(
            results
        )
        ids += suffix
        messages += [said, *results]
    plain = chat.control.in_messages(messages)
    whole = chat.renderer.ids(plain, tools=[TOOL], opens_turn=True)
    assert rest(chat, ids) == rest(chat, whole)


def rest(chat: ChatFormat, ids: list[int]) -> str:
    """A conversation without reasoning, which is sampled and stays where it was."""
    return without_thoughts(decode(chat.renderer.tokenizer, ids), chat.syntax.reasoning)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.contract(29)
def test_a_template_is_extended_exactly_or_refused(name: str) -> None:
    fate, source = ODD[name]
    tokenizer = merging_tokenizer(chat_template=source)
    tokenizer.bos_token = "<|im_start|>"
    if fate is Fate.REFUSED:
        with pytest.raises(TemplateError, match=r"first difference at token|Roles must alternate"):
            ChatFormat.for_tokenizer(tokenizer, tools=[TOOL])
        return
    chat = ChatFormat.for_tokenizer(tokenizer, tools=[TOOL])
    assert (chat.template is None) == (fate is Fate.OWN)
    for prompt in PROMPTS:
        compare(chat, prompt, ONE_BY_ONE)
        compare(chat, prompt, TOGETHER)
    compare(chat, [USER], ONE_BY_ONE * 3)
