"""Our own template, for tokenizers whose template has no place for tools."""

from typing import Any

import pytest

from corral.chat import ChatFormat
from corral.errors import TemplateError
from corral.records import Finish, Message, ToolCall
from support.template_zoo import PLAIN_CHATML
from support.toy_tokenizers import TAGS, byte_level_tokenizer, merging_tokenizer

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "move",
        "description": "Move the paddle.\nOnce.",
        "parameters": {
            "type": "object",
            "properties": {
                "x": {"type": "integer", "description": "Column."},
                "side": {"type": "string", "enum": ["left", "right"]},
                "path": {"type": "array", "items": {"type": "number"}},
                "items": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "required": ["x", "side"],
        },
    },
}
CONVERSATION: list[Message] = [
    {"role": "system", "content": "Play to win."},
    {"role": "user", "content": "Go."},
    {
        "role": "assistant",
        "content": "Left.",
        "reasoning_content": "It is near.",
        "tool_calls": [ToolCall(name="move", arguments={"x": 1}).as_message_part()],
    },
    {"role": "tool", "name": "move", "content": "ok"},
    {"role": "tool", "name": "move", "content": "fine"},
    {"role": "assistant", "content": "Done."},
]

CHATML = """\
<|im_start|>system
Play to win.
Tools:
move(x: integer, side: left|right, path?: number[], items?: string|null) Move the paddle. Once.
Call: <tool_call>{"name": ..., "arguments": {...}}</tool_call><|im_end|>
<|im_start|>user
Go.<|im_end|>
<|im_start|>assistant
<think>It is near.</think>Left.
<tool_call>{"name": "move", "arguments": {"x": 1}}</tool_call><|im_end|>
<|im_start|>tool
<tool_response>ok</tool_response><tool_response>fine</tool_response><|im_end|>
<|im_start|>assistant
Done.<|im_end|>
<|im_start|>assistant
"""


@pytest.mark.parametrize("theirs", [None, PLAIN_CHATML])
def test_chatml_markers_are_used_where_the_tokenizer_has_them(theirs: str | None) -> None:
    tokenizer = byte_level_tokenizer(chat_template=theirs)
    chat = ChatFormat.for_tokenizer(tokenizer)
    ids = chat.prompt_ids(CONVERSATION, [TOOL])
    assert tokenizer.decode(ids) == CHATML
    assert tokenizer.chat_template == theirs
    assert chat.stop_ids == {tokenizer.eos_token_id}


def test_without_chatml_markers_the_eos_token_ends_a_turn() -> None:
    tokenizer = byte_level_tokenizer(markers=(), eos="<eos>", tags=TAGS)
    chat = ChatFormat.for_tokenizer(tokenizer)
    expected = CHATML.replace("<|im_start|>", "").replace("<|im_end|>\n", "<eos>")
    assert tokenizer.decode(chat.prompt_ids(CONVERSATION, [TOOL])) == expected


@pytest.mark.parametrize("make", [byte_level_tokenizer, merging_tokenizer])
@pytest.mark.parametrize("markers", [("<|im_start|>", "<|im_end|>"), ()])
def test_appending_equals_rendering_with_every_thought_kept(make: Any, markers: Any) -> None:
    tokenizer = make(markers=markers, eos="<eos>")
    chat = ChatFormat.for_tokenizer(tokenizer)
    question, first, *results, last = CONVERSATION[1:]
    ids = chat.prompt_ids([question], [TOOL])
    ids += chat.turn_ids(first) + chat.suffix_ids(results) + chat.turn_ids(last)
    again: Message = {"role": "user", "content": "Again."}
    ids += chat.suffix_ids([again])
    whole = [question, first, *results, last, again]
    assert ids == chat.prompt_ids(whole, [TOOL])
    assert "<think>It is near.</think>" in tokenizer.decode(ids)


def test_a_turn_reads_back_as_the_message_it_was_made_of() -> None:
    tokenizer = merging_tokenizer()
    chat = ChatFormat.for_tokenizer(tokenizer)
    for message in (CONVERSATION[2], CONVERSATION[5]):
        assert chat.parse(chat.turn_ids(message), finish=Finish.STOP).as_message() == message


def test_a_turn_said_again_is_the_same_and_one_with_its_arguments_turned_round_is_not() -> None:
    chat = ChatFormat.for_tokenizer(byte_level_tokenizer())

    def place(*arguments: tuple[str, int]) -> list[int]:
        function = {"name": "place", "arguments": dict(arguments)}
        call = {"type": "function", "function": function}
        return chat.turn_ids({"role": "assistant", "content": "", "tool_calls": [call]})

    first = place(("row", 1), ("col", 2))
    expected = list(first)
    first.append(0)  # what was handed out is the caller's
    assert place(("row", 1), ("col", 2)) == expected
    assert place(("col", 2), ("row", 1)) != expected


def test_the_saved_template_alone_renders_the_same() -> None:
    chat = ChatFormat.for_tokenizer(byte_level_tokenizer())
    other = byte_level_tokenizer(chat_template=chat.template)
    reloaded = ChatFormat.for_tokenizer(other)
    assert reloaded.template is None
    assert reloaded.prompt_ids(CONVERSATION, [TOOL]) == chat.prompt_ids(CONVERSATION, [TOOL])


def test_no_system_block_without_tools_and_system_message() -> None:
    tokenizer = byte_level_tokenizer()
    ids = ChatFormat.for_tokenizer(tokenizer).prompt_ids([CONVERSATION[1]])
    assert tokenizer.decode(ids) == "<|im_start|>user\nGo.<|im_end|>\n<|im_start|>assistant\n"


def test_a_run_without_tools_keeps_the_template_of_the_tokenizer() -> None:
    tokenizer = byte_level_tokenizer(chat_template=PLAIN_CHATML)
    chat = ChatFormat.for_tokenizer(tokenizer, needs_tools=False)
    assert chat.template is None


def test_a_tokenizer_without_any_end_is_refused_with_the_remedy() -> None:
    tokenizer = byte_level_tokenizer(markers=(), eos="<eos>")
    tokenizer.eos_token = None
    with pytest.raises(TemplateError, match=r"set tokenizer\.eos_token"):
        ChatFormat.for_tokenizer(tokenizer)
