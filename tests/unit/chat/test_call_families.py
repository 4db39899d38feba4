"""Families whose templates TRL does not ship: their form of calls, through proof and episode."""

from typing import Any

import pytest

from corral.chat import ChatFormat
from corral.records import Finish, Message, ToolCall
from support.toy_tokenizers import byte_level_tokenizer

LISTING = "{%- if tools -%}{{ 'Tools: ' + tools | tojson + '\\n' }}{%- endif -%}"
MISTRAL_LIST = (
    "{{ bos_token }}{%- for m in messages -%}"
    "{%- if m.role == 'user' -%}"
    "{%- if tools and loop.first -%}{{ '[AVAILABLE_TOOLS]' + tools | tojson }}"
    "{{- '[/AVAILABLE_TOOLS]' }}{%- endif -%}{{ '[INST]' + m.content + '[/INST]' }}"
    "{%- elif m.role == 'tool' -%}"
    "{{ '[TOOL_RESULTS]{\"content\": ' + m.content | tojson + '}[/TOOL_RESULTS]' }}"
    "{%- elif m.tool_calls -%}{{ '[TOOL_CALLS][' }}{%- for c in m.tool_calls -%}"
    '{{ \'{"name": "\' + c.function.name + \'", "arguments": \' + c.function.arguments | tojson '
    "+ ', \"id\": \"' + c.id + '\"}' + ('' if loop.last else ', ') }}{%- endfor -%}"
    "{{ ']' + eos_token }}{%- else -%}{{ m.content + eos_token }}{%- endif -%}{%- endfor -%}"
)
MISTRAL_NAMED = (
    "{{ bos_token }}{%- for m in messages -%}"
    "{%- if m.role == 'user' -%}"
    "{%- if tools and loop.first -%}{{ '[AVAILABLE_TOOLS]' + tools | tojson }}"
    "{{- '[/AVAILABLE_TOOLS]' }}{%- endif -%}{{ '[INST]' + m.content + '[/INST]' }}"
    "{%- elif m.role == 'tool' -%}{{ '[TOOL_RESULTS]' + m.content + '[/TOOL_RESULTS]' }}"
    "{%- else -%}{%- if m.reasoning_content -%}"
    "{{ '[THINK]' + m.reasoning_content + '[/THINK]' }}{%- endif -%}{{ m.content }}"
    "{%- for c in m.tool_calls or [] -%}"
    "{{ '[TOOL_CALLS]' + c.function.name + '[ARGS]' + c.function.arguments | tojson }}"
    "{%- endfor -%}{{ eos_token }}{%- endif -%}{%- endfor -%}"
)
_DEEPSEEK = (
    LISTING + "{%- for m in messages -%}"
    "{%- if m.role == 'user' -%}{{ '<｜User｜>' + m.content + '<｜Assistant｜>' }}"
    "{%- elif m.role == 'tool' -%}RESULT"
    "{%- else -%}{{ m.content }}{%- for c in m.tool_calls or [] -%}"
    "{{ '<｜tool▁calls▁begin｜>' if loop.first else 'BETWEEN' }}CALL"
    "{{ '<｜tool▁calls▁end｜>' if loop.last }}{%- endfor -%}{{ eos_token }}"
    "{%- endif -%}{%- endfor -%}"
)
_RESULTS = (
    "{{ '<｜tool▁outputs▁begin｜>' if loop.previtem.role != 'tool' }}"
    "{{ '<｜tool▁output▁begin｜>' + m.content + '<｜tool▁output▁end｜>' }}"
    "{{ '<｜tool▁outputs▁end｜>' if loop.last or loop.nextitem.role != 'tool' }}"
)
DEEPSEEK_V3 = (
    _DEEPSEEK.replace("RESULT", _RESULTS)
    .replace("BETWEEN", "\\n")
    .replace(
        "CALL",
        "{{ '<｜tool▁call▁begin｜>function<｜tool▁sep｜>' + c.function.name + '\\n```json\\n' "
        "+ c.function.arguments + '\\n```<｜tool▁call▁end｜>' }}",
    )
)
DEEPSEEK_V31 = (
    _DEEPSEEK.replace(
        "RESULT", "{{ '<｜tool▁output▁begin｜>' + m.content + '<｜tool▁output▁end｜>' }}"
    )
    .replace("BETWEEN", "")
    .replace(
        "CALL",
        "{{ '<｜tool▁call▁begin｜>' + c.function.name + '<｜tool▁sep｜>' "
        "+ c.function.arguments | tojson + '<｜tool▁call▁end｜>' }}",
    )
)
_COHERE = (
    LISTING + "{%- for m in messages -%}{{ '<|START_OF_TURN_TOKEN|><|' + m.role + '|>' }}"
    "{%- if m.role == 'assistant' -%}{%- if m.reasoning_content -%}"
    "{{ '<|START_THINKING|>' + m.reasoning_content + '<|END_THINKING|>' }}{%- endif -%}"
    "{%- if m.tool_calls -%}OPEN{%- for c in m.tool_calls -%}"
    '{{ \'\\n    {"tool_name": "\' + c.function.name + \'", "parameters": \' '
    "+ c.function.arguments | tojson + '}' + ('' if loop.last else ',') }}{%- endfor -%}CLOSE"
    "{%- else -%}{{ SAID }}{%- endif -%}{%- else -%}{{ m.content }}{%- endif -%}"
    "{{ '<|END_OF_TURN_TOKEN|>' }}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|START_OF_TURN_TOKEN|><|assistant|>' }}{%- endif -%}"
)
COHERE_A = (
    _COHERE.replace("OPEN", "{{ '<|START_ACTION|>[' }}")
    .replace("CLOSE", "{{ '\\n]<|END_ACTION|>' }}")
    .replace("SAID", "'<|START_RESPONSE|>' + m.content + '<|END_RESPONSE|>'")
)
COHERE_R = (
    _COHERE.replace("OPEN", "{{ 'Action: ```json\\n[' }}")
    .replace("CLOSE", "{{ '\\n]```' }}")
    .replace("SAID", "m.content")
)
PHI4 = (
    LISTING + "{%- for m in messages -%}{{ '<|' + m.role + '|>' + m.content }}"
    "{%- if m.tool_calls -%}{{ '<|tool_call|>[' }}{%- for c in m.tool_calls -%}"
    '{{ \'{"name": "\' + c.function.name + \'", "arguments": \' + c.function.arguments | tojson '
    "+ '}' + ('' if loop.last else ', ') }}{%- endfor -%}{{ ']<|/tool_call|>' }}{%- endif -%}"
    "{{ '<|end|>' }}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|assistant|>' }}{%- endif -%}"
)

CASES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "mistral list": (
        "mistral",
        MISTRAL_LIST,
        "</s>",
        ("[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[INST]", "[/INST]"),
    ),
    "mistral named": (
        "mistral",
        MISTRAL_NAMED,
        "</s>",
        ("[TOOL_CALLS]", "[ARGS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[THINK]", "[/THINK]"),
    ),
    "deepseek v3": (
        "deepseek",
        DEEPSEEK_V3,
        "<｜end▁of▁sentence｜>",
        ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>",
         "<｜tool▁call▁end｜>", "<｜tool▁sep｜>", "<｜tool▁output▁end｜>"),
    ),
    "deepseek v3.1": (
        "deepseek",
        DEEPSEEK_V31,
        "<｜end▁of▁sentence｜>",
        ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>",
         "<｜tool▁call▁end｜>", "<｜tool▁sep｜>", "<｜tool▁output▁end｜>"),
    ),
    "cohere a": (
        "cohere",
        COHERE_A,
        "<|END_OF_TURN_TOKEN|>",
        ("<|START_ACTION|>", "<|END_ACTION|>", "<|START_THINKING|>", "<|END_THINKING|>",
         "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_OF_TURN_TOKEN|>"),
    ),
    "cohere r": ("cohere", COHERE_R, "<|END_OF_TURN_TOKEN|>", ("<|START_OF_TURN_TOKEN|>",)),
    "phi 4": ("phi", PHI4, "<|end|>", ("<|tool_call|>", "<|/tool_call|>", "<|assistant|>")),
}  # fmt: skip
QUESTION: Message = {"role": "user", "content": "Find it."}
ODD = {"text": 'é 🙂 "a"\n', "n": 5, "list": [1.5, None, {"b": True}]}


def chat_of(name: str) -> ChatFormat:
    _, source, stop, markers = CASES[name]
    tokenizer = byte_level_tokenizer(chat_template=source, eos=stop, plain_tags=markers)
    return ChatFormat.for_tokenizer(tokenizer)


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
