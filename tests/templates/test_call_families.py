"""Families whose templates TRL does not ship: their form of calls, through proof and episode."""

from typing import Any

import pytest

from corral.chat import ChatFormat
from corral.errors import TemplateError
from corral.records import Finish, Message, ToolCall
from support.family_templates import CASES, family_tokenizer
from support.toy_tokenizers import byte_level_tokenizer
from support.trl_templates import dress, template_files

QUESTION: Message = {"role": "user", "content": "Find it."}
ODD = {"text": 'é 🙂 "a"\n', "n": 5, "list": [1.5, None, {"b": True}]}


def chat_of(name: str, **options: Any) -> ChatFormat:
    tokenizer, stops = family_tokenizer(name)
    return ChatFormat.for_tokenizer(tokenizer, extra_stop_ids=stops, template_kwargs=options)


def calling(*arguments: dict[str, Any], content: str = "") -> Message:
    calls = [ToolCall(name="act", arguments=each).as_message_part() for each in arguments]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def results(*texts: str) -> list[Message]:
    return [{"role": "tool", "name": "act", "content": text} for text in texts]


@pytest.mark.parametrize("name", CASES)
def test_the_way_a_family_writes_calls_is_found_and_read(name: str) -> None:
    chat = chat_of(name)
    assert (chat.template, chat.syntax.name) == (None, CASES[name][0])
    for message in (calling(ODD), calling({"n": 1}, ODD), calling({})):
        turn = chat.parse(chat.turn_ids(message), finish=Finish.STOP)
        assert turn.as_message() == message


@pytest.mark.parametrize("name", CASES)
def test_appending_equals_rendering_the_whole(name: str) -> None:
    chat = chat_of(name)
    turns = [(calling({"n": 1}, {"n": 2}), results("a", "b\n")), (calling(ODD), results(""))]
    ids, messages = chat.prompt_ids([QUESTION]), [QUESTION]
    for message, heard in turns:
        ids += chat.turn_ids(message) + chat.suffix_ids(heard, assistant=message)
        messages += [message, *heard]
    assert ids == chat.renderer.ids(messages, opens_turn=True)


@pytest.mark.parametrize("name", CASES)
def test_what_a_family_means_by_a_token_is_not_said_by_its_letters(name: str) -> None:
    chat = chat_of(name)
    attack = ".".join(chat.control.texts.values())
    harmless, hostile = chat.suffix_ids(results("7")), chat.suffix_ids(results(attack))
    assert [each for each in hostile if each in chat.control.texts] == [
        each for each in harmless if each in chat.control.texts
    ]
    turn = chat.parse(chat.turn_ids(calling({"text": attack})), finish=Finish.STOP)
    assert turn.calls == (ToolCall(name="act", arguments={"text": attack}),)


@pytest.mark.parametrize("name", ["mistral named", "cohere a"])
def test_reasoning_and_text_of_a_family(name: str) -> None:
    chat = chat_of(name)
    message: Message = {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."}
    assert chat.parse(chat.turn_ids(message), finish=Finish.STOP).as_message() == message


def test_reasoning_is_open_only_where_the_template_opens_it() -> None:
    """DeepSeek V3.1 opens it after a question, and not after the result of a tool."""
    chat = chat_of("deepseek v3.1 thinks", thinking=True)
    encode = chat.renderer.tokenizer.encode
    asked = chat.prompt_ids([QUESTION])
    first = chat.turn_ids({**calling({"n": 1}), "reasoning_content": "Hm."}, after=asked)
    heard = [*asked, *first, *chat.suffix_ids(results("7"))]
    second = chat.turn_ids(calling({"n": 2}), after=heard)
    assert chat.parse(first, finish=Finish.STOP, after=asked).reasoning == "Hm."
    for ids, reasoning in [(second, None), (encode("<think>Hm.</think>") + second, "Hm.")]:
        turn = chat.parse(ids, finish=Finish.STOP, after=heard)
        assert (turn.reasoning, turn.calls) == (
            reasoning,
            (ToolCall(name="act", arguments={"n": 2}),),
        )
    assert chat.parse(second, finish=Finish.STOP, after=asked).calls == ()


def test_a_call_in_reasoning_that_the_template_opened_after_a_result_is_none() -> None:
    """Gemma 4 with thinking: the prompt opens no reasoning, each result of a tool does."""
    file = next(path for path in template_files() if path.stem == "gemma4_v5")
    tokenizer = byte_level_tokenizer()
    stops = dress(tokenizer, file)
    chat = ChatFormat.for_tokenizer(
        tokenizer, extra_stop_ids=stops, template_kwargs={"enable_thinking": True}
    )
    asked = chat.prompt_ids([QUESTION])
    demonstrated: Message = {**calling({"n": 1}), "reasoning_content": "Hm."}
    heard = [*asked, *chat.turn_ids(demonstrated, after=asked), *chat.suffix_ids(results("7"))]
    again = chat.turn_ids(demonstrated, after=heard)
    assert tokenizer.decode([*heard, *again]).count("<|channel>thought\nHm.\n<channel|>") == 2
    call = chat.turn_ids(calling({"n": 1}), after=asked)
    inside = [*tokenizer.encode("Maybe "), *call]
    assert chat.parse(inside, finish=Finish.STOP, after=heard).calls == ()
    for turn in (again, chat.turn_ids(calling({"n": 1}), after=heard)):
        (done,) = chat.parse(turn, finish=Finish.STOP, after=heard).calls
        assert done == ToolCall(name="act", arguments={"n": 1})


@pytest.mark.parametrize(
    ("arguments", "template"),
    [({"path": "C:\\new"}, "lfm2_2_5"), ({"text": "', n=5, m='x"}, "lfm2_2_5")],
)
def test_a_demonstrated_call_that_reads_as_another_is_refused(
    arguments: dict[str, Any], template: str
) -> None:
    tokenizer = byte_level_tokenizer()
    stops = dress(tokenizer, next(path for path in template_files() if path.stem == template))
    chat = ChatFormat.for_tokenizer(tokenizer, extra_stop_ids=stops)
    with pytest.raises(TemplateError, match=r"writes the call act\(.* which reads as act\("):
        chat.turn_ids(calling(arguments))
    assert chat.turn_ids(calling({"text": "it's"}))
