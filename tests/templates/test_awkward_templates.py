"""Templates with awkward habits: each is either extended correctly or refused with the reason."""

from collections.abc import Sequence
from typing import Any

import pytest

from corral.chat import ChatFormat
from corral.errors import TemplateError
from corral.records import Finish, Message, ToolCall
from support.template_zoo import EXTENDABLE, HOPELESS, template
from support.toy_tokenizers import byte_level_tokenizer, merging_tokenizer

QUESTION: Message = {"role": "user", "content": "Find it."}
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "guess",
            "description": "Guess.",
            "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
        },
    }
]


def saying(n: int, reasoning: str | None = "Hm.") -> Message:
    call = ToolCall(name="guess", arguments={"n": n}).as_message_part()
    message: Message = {"role": "assistant", "content": "", "tool_calls": [call]}
    if reasoning is not None:
        message["reasoning_content"] = reasoning
    return message


def result(text: str) -> Message:
    return {"role": "tool", "name": "guess", "content": text}


def appended(chat: ChatFormat, turns: Sequence[Message], results: Sequence[Message]) -> list[int]:
    ids = chat.prompt_ids([QUESTION], TOOLS)
    for turn, heard in zip(turns, results, strict=True):
        ids += chat.turn_ids(turn) + chat.suffix_ids([heard])
    return ids


def rendered(chat: ChatFormat, turns: Sequence[Message], results: Sequence[Message]) -> list[int]:
    history = [message for pair in zip(turns, results, strict=True) for message in pair]
    return chat.renderer.ids([QUESTION, *history], tools=TOOLS, opens_turn=True)


@pytest.mark.parametrize("make", [byte_level_tokenizer, merging_tokenizer])
@pytest.mark.parametrize("name", EXTENDABLE)
@pytest.mark.report("P011")
def test_every_extendable_template_is_proved_and_used(name: str, make: Any) -> None:
    chat = ChatFormat.for_tokenizer(make(chat_template=EXTENDABLE[name]))
    assert chat.template is None
    turn = chat.parse(chat.turn_ids(saying(7, reasoning=None)), finish=Finish.STOP)
    assert turn.calls == (ToolCall(name="guess", arguments={"n": 7}),)
    assert (turn.content, turn.reasoning or "") == ("", "")


KEEPS_HISTORY = [
    name
    for name in EXTENDABLE
    if name not in ("drops old thoughts", "drops all thoughts from history", "closes a thought")
]


@pytest.mark.parametrize("name", KEEPS_HISTORY)
@pytest.mark.parametrize("rounds", [1, 2, 4])
@pytest.mark.report("P003", "P004", "P009", "P013")
def test_appending_turn_by_turn_equals_rendering_the_whole(name: str, rounds: int) -> None:
    chat = ChatFormat.for_tokenizer(merging_tokenizer(chat_template=EXTENDABLE[name]))
    turns = [saying(index) for index in range(rounds)]
    results = [result(f"hello aaa\n\n{index}") for index in range(rounds)]
    assert appended(chat, turns, results) == rendered(chat, turns, results)


@pytest.mark.parametrize("name", EXTENDABLE)
@pytest.mark.report("P011")
def test_parallel_results_follow_in_one_suffix(name: str) -> None:
    tokenizer = byte_level_tokenizer(chat_template=EXTENDABLE[name])
    chat = ChatFormat.for_tokenizer(tokenizer)
    text = tokenizer.decode(chat.suffix_ids([result("first"), result("second")]))
    assert text.index("first") < text.index("second")
    assert text.count("assistant") == 1


@pytest.mark.report("P006", "P009")
def test_history_keeps_the_thoughts_a_template_would_drop() -> None:
    tokenizer = byte_level_tokenizer(chat_template=EXTENDABLE["drops all thoughts from history"])
    chat = ChatFormat.for_tokenizer(tokenizer)
    turns, results = [saying(1), saying(2)], [result("a"), result("b")]
    text = tokenizer.decode(appended(chat, turns, results))
    assert text.count("<think>\nHm.\n</think>") == 2
    assert "<think>" not in tokenizer.decode(rendered(chat, turns, results))


@pytest.mark.parametrize("name", HOPELESS)
@pytest.mark.contract(29)
@pytest.mark.report("P009")
def test_a_template_that_rewrites_history_is_refused_with_the_tokens(name: str) -> None:
    with pytest.raises(TemplateError, match=r"first difference at token \d+: expected '.*found '"):
        ChatFormat.for_tokenizer(byte_level_tokenizer(chat_template=HOPELESS[name]))


@pytest.mark.report("P007")
def test_a_stop_token_that_merges_with_what_follows_is_refused() -> None:
    """The text of the prefix is a prefix, its ids are not: two newlines are one id."""
    source = template(separator="", keeps_think="false")
    source = source.replace("}\\n</tool_call>", "}</tool_call>").replace("<|im_end|>", "\\n")
    source = source.replace("'<|im_start|>tool", "'\\n").replace("<|im_start|>", "")
    for make, is_refused in [(byte_level_tokenizer, False), (merging_tokenizer, True)]:
        tokenizer = make(chat_template=source)
        (newline,) = tokenizer.encode("\n")
        if not is_refused:
            assert newline in ChatFormat.for_tokenizer(tokenizer, extra_stop_ids=[newline]).stop_ids
            continue
        with pytest.raises(TemplateError, match=r"'\\n' merges with the text after it.*token 0"):
            ChatFormat.for_tokenizer(tokenizer, extra_stop_ids=[newline])


def test_a_template_that_writes_no_stop_token_is_refused() -> None:
    source = template().replace("<|im_end|>", "|")
    with pytest.raises(TemplateError, match=r"none of the stop tokens \('<\|im_end\|>'\)"):
        ChatFormat.for_tokenizer(byte_level_tokenizer(chat_template=source))


def test_a_template_that_lists_tools_but_rejects_results_is_refused() -> None:
    source = template(content="raise_exception('No tool role here.')")
    with pytest.raises(TemplateError, match=r"\[user, assistant, tool\].*No tool role here"):
        ChatFormat.for_tokenizer(byte_level_tokenizer(chat_template=source))


@pytest.mark.report("P039")
def test_the_turn_end_of_the_template_stops_too_when_it_is_not_eos() -> None:
    tokenizer = byte_level_tokenizer(chat_template=template(), eos="<eos>")
    chat = ChatFormat.for_tokenizer(tokenizer, extra_stop_ids=[5])
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert chat.stop_ids == {tokenizer.eos_token_id, end, 5}
    assert chat.turn_ids({"role": "assistant", "content": "a"})[-1] == end


@pytest.mark.report("P019")
def test_no_tools_and_an_empty_list_of_tools_render_alike() -> None:
    source = EXTENDABLE["asks whether tools are none"]
    tokenizer = byte_level_tokenizer(chat_template=source)
    chat = ChatFormat.for_tokenizer(tokenizer)
    assert chat.prompt_ids([QUESTION], []) == chat.prompt_ids([QUESTION], None)
    assert "TOOLS" not in tokenizer.decode(chat.prompt_ids([QUESTION], []))


@pytest.mark.parametrize("name", ["separator", "text arguments only", "mapping arguments only"])
@pytest.mark.parametrize("arguments", [{"n": 7}, '{"n": 7}'])
@pytest.mark.parametrize("content", [{"content": ""}, {"content": None}, {}])
@pytest.mark.report("P012", "P074")
def test_arguments_and_content_are_spelled_as_the_template_wants(
    name: str, arguments: Any, content: dict[str, Any]
) -> None:
    tokenizer = byte_level_tokenizer(chat_template=EXTENDABLE[name])
    chat = ChatFormat.for_tokenizer(tokenizer)
    call = {"type": "function", "function": {"name": "guess", "arguments": arguments}}
    message: Any = {"role": "assistant", "tool_calls": [call], **content}
    assert chat.turn_ids(message) == chat.turn_ids(saying(7, reasoning=None))
    assert message == {"role": "assistant", "tool_calls": [call], **content}


@pytest.mark.report("P006")
def test_a_prefilled_think_tag_is_not_sampled_again() -> None:
    tokenizer = byte_level_tokenizer(chat_template=EXTENDABLE["opens a thought"])
    chat = ChatFormat.for_tokenizer(tokenizer)
    assert chat.opens_thinking
    message: Message = {"role": "assistant", "content": "It is 4.", "reasoning_content": "Hm."}
    ids = chat.turn_ids(message)
    assert tokenizer.decode(ids) == "Hm.\n</think>\n\nIt is 4.<|im_end|>"
    assert chat.parse(ids, finish=Finish.STOP).as_message() == message
    again = chat.renderer.ids([QUESTION, message])
    assert [*chat.prompt_ids([QUESTION]), *ids] == again[: -len(tokenizer.encode("\n"))]


def test_reasoning_is_refused_where_the_template_closes_it() -> None:
    chat = ChatFormat.for_tokenizer(
        byte_level_tokenizer(chat_template=EXTENDABLE["closes a thought"])
    )
    with pytest.raises(TemplateError, match="remove the reasoning"):
        chat.turn_ids(saying(1))


@pytest.mark.report("P004", "P017")
def test_special_tokens_inside_a_turn_do_not_shift_the_next_suffix() -> None:
    tokenizer = merging_tokenizer(chat_template=template(), tags=("<tool_call>", "</tool_call>"))
    chat = ChatFormat.for_tokenizer(tokenizer)
    odd = [*tokenizer.encode("<|im_start|>"), *tokenizer.encode("sto"), *tokenizer.encode("ne")]
    said = [*odd, *chat.turn_ids(saying(3))]
    turn = chat.parse(said, finish=Finish.STOP)
    assert turn.calls == (ToolCall(name="guess", arguments={"n": 3}),)
    assert chat.suffix_ids([result("x")]) == tokenizer.encode(
        "\n<|im_start|>tool\nx<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize("tags", ["none", "special", "plain"])
def test_calls_are_read_whether_or_not_their_tags_are_special(tags: str) -> None:
    words = ("<tool_call>", "</tool_call>", "<think>", "</think>")
    options = {"none": {}, "special": {"tags": words}, "plain": {"plain_tags": words}}[tags]
    chat = ChatFormat.for_tokenizer(byte_level_tokenizer(chat_template=template(), **options))
    turn = chat.parse(chat.turn_ids(saying(5)), finish=Finish.STOP)
    assert (turn.reasoning, turn.content) == ("Hm.", "")
    assert turn.calls == (ToolCall(name="guess", arguments={"n": 5}),)


@pytest.mark.report("P016")
def test_characters_split_over_many_ids_arrive_whole() -> None:
    chat = ChatFormat.for_tokenizer(byte_level_tokenizer(chat_template=template()))
    call = ToolCall(name="guess", arguments={"city": "Zürich 🙂 你好"})
    ids = chat.turn_ids(
        {"role": "assistant", "content": "", "tool_calls": [call.as_message_part()]}
    )
    assert chat.parse(ids, finish=Finish.STOP).calls == (call,)
    for end in range(len(ids)):  # also in the middle of a character
        for finish in Finish:
            cut = chat.parse(ids[:end], finish=finish).calls
            assert all(found == call or not isinstance(found, ToolCall) for found in cut)


@pytest.mark.report("P072")
def test_a_turn_cut_by_the_limit_executes_nothing() -> None:
    chat = ChatFormat.for_tokenizer(byte_level_tokenizer(chat_template=template()))
    ids = chat.turn_ids(saying(1))[:-1]
    assert chat.parse(ids, finish=Finish.STOP).calls == (
        ToolCall(name="guess", arguments={"n": 1}),
    )
    (cut,) = chat.parse(ids, finish=Finish.LENGTH).calls
    assert not isinstance(cut, ToolCall)
    assert chat.parse([], finish=Finish.LENGTH).content == ""


@pytest.mark.report("P022")
def test_only_the_final_stop_token_is_removed() -> None:
    tokenizer = byte_level_tokenizer(chat_template=template())
    chat = ChatFormat.for_tokenizer(tokenizer)
    assert tokenizer.pad_token_id == tokenizer.eos_token_id
    ids = [*tokenizer.encode("a"), tokenizer.eos_token_id, tokenizer.eos_token_id]
    assert chat.parse(ids, finish=Finish.STOP).content == "a<|im_end|>"


def test_text_blocks_are_text_and_results_are_named_after_their_calls() -> None:
    source = template(content="message.name + ': ' + message.content")
    tokenizer = byte_level_tokenizer(chat_template=source)
    chat = ChatFormat.for_tokenizer(tokenizer)
    block: Message = {"role": "tool", "content": [{"type": "text", "text": "higher"}]}
    ids = chat.suffix_ids([block], assistant=saying(1))
    assert ids == chat.suffix_ids([result("higher")])
    assert "guess: higher" in tokenizer.decode(ids)


def test_a_name_the_model_invented_leaves_no_trace_after_many() -> None:
    chat = ChatFormat.for_tokenizer(byte_level_tokenizer(chat_template=template()))
    expected = chat.suffix_ids([result("x")])
    for index in range(600):
        invented: Message = {"role": "tool", "name": f"tool{index}", "content": "x"}
        assert chat.suffix_ids([invented]) == expected
    assert chat.suffixes.kept() <= 256


@pytest.mark.parametrize("name", KEEPS_HISTORY)
@pytest.mark.report("P009")
def test_a_question_in_the_middle_of_a_conversation_is_appended_alike(name: str) -> None:
    chat = ChatFormat.for_tokenizer(merging_tokenizer(chat_template=EXTENDABLE[name]))
    answer: Message = {"role": "assistant", "content": "It is 1.", "reasoning_content": "Hm."}
    turns = [saying(1), saying(2), answer, saying(3)]
    heard: list[Message] = [result("a"), result("b"), {"role": "user", "content": "Again."}]
    heard.append(result("hello aaa\n\n"))
    assert appended(chat, turns, heard) == rendered(chat, turns, heard)


@pytest.mark.report("P009")
def test_a_question_in_the_middle_leaves_earlier_thoughts_where_they_were_sampled() -> None:
    tokenizer = byte_level_tokenizer(chat_template=EXTENDABLE["drops old thoughts"])
    chat = ChatFormat.for_tokenizer(tokenizer)
    question: Message = {"role": "user", "content": "Again."}
    ids = appended(chat, [saying(1), saying(2)], [result("a"), question])
    assert tokenizer.decode(ids).count("<think>\nHm.\n</think>") == 2


@pytest.mark.report("P028")
def test_the_tokenizer_that_was_given_is_the_one_that_is_used() -> None:
    tokenizer = byte_level_tokenizer(chat_template=template(), plain_tags=("<my tag>",))
    chat = ChatFormat.for_tokenizer(tokenizer)
    assert chat.renderer.tokenizer is tokenizer
    tag = tokenizer.convert_tokens_to_ids("<my tag>")
    assert tag in chat.prompt_ids([{"role": "user", "content": "a <my tag>"}])
    assert tokenizer.chat_template == template()


@pytest.mark.parametrize("name", EXTENDABLE)
@pytest.mark.report("P008", "P036")
def test_calls_of_the_history_are_rendered(name: str) -> None:
    tokenizer = byte_level_tokenizer(chat_template=EXTENDABLE[name])
    chat = ChatFormat.for_tokenizer(tokenizer)
    history = [QUESTION, saying(4711, reasoning=None), result("low"), QUESTION]
    text = tokenizer.decode(chat.prompt_ids(history, TOOLS))
    assert text.count("4711") == 1
    assert text.index("4711") < text.index("low")


def test_a_call_that_a_template_leaves_out_of_a_demonstration_is_an_error() -> None:
    source = template().replace("message.tool_calls or []", "(message.tool_calls or [])[:1]")
    chat = ChatFormat.for_tokenizer(byte_level_tokenizer(chat_template=source))
    both = [*saying(1)["tool_calls"], *saying(2)["tool_calls"]]
    with pytest.raises(TemplateError, match="1 of the 2 calls of 'guess'"):
        chat.turn_ids({"role": "assistant", "content": "", "tool_calls": both})
