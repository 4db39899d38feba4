"""Which tokens a row becomes, and which of them are learned."""

from typing import Any

import pytest

from corral import SFTConfig
from corral.errors import UsageError
from corral.training.sft_batches import blocks_of
from corral.training.token_rows import IGNORED, RowEncoder, TokenRow
from support.adder import TOOLS
from support.tiny_models import tiny_model, tiny_tokenizer
from support.toy_tokenizers import byte_level_tokenizer

TOKENIZER = tiny_tokenizer()
MODEL = tiny_model(TOKENIZER)
END = "<|im_end|>"


def call(arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "add", "arguments": arguments}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str | None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


TALK: dict[str, Any] = {
    "messages": [
        user("1 + 2?"),
        assistant(None, tool_calls=[call({"a": 1, "b": 2})]),
        {"role": "tool", "name": "add", "content": "3"},
        assistant("It is 3."),
    ],
    "tools": TOOLS,
}


def encode(row: dict[str, Any], tokenizer: Any = TOKENIZER, **options: Any) -> TokenRow:
    formatting = options.pop("formatting_func", None)
    return RowEncoder(tokenizer, MODEL, SFTConfig(**options), formatting).encode(row)


def text(row: TokenRow, tokenizer: Any = TOKENIZER) -> str:
    return tokenizer.decode(list(row.ids), skip_special_tokens=False)


def learned(row: TokenRow, tokenizer: Any = TOKENIZER) -> str:
    return tokenizer.decode([token for token in row.labels if token != IGNORED])


def test_of_a_conversation_everything_is_learned_unless_asked_otherwise() -> None:
    row = encode(TALK)
    rendered = TOKENIZER.apply_chat_template(
        [TALK["messages"][0], {**TALK["messages"][1], "content": ""}, *TALK["messages"][2:]],
        tools=TOOLS,
        tokenize=False,
    )
    assert text(row) == rendered
    assert row.labels == list(row.ids)


def test_of_an_assistant_calls_and_answers_are_learned_and_results_are_not() -> None:
    row = encode(TALK, assistant_only_loss=True)
    said = learned(row)
    assert '{"name": "add", "arguments": {"a": 1, "b": 2}}' in said
    assert said.endswith(f"It is 3.{END}")
    assert said.count(END) == 2
    assert "1 + 2?" not in said
    assert "tool\n" not in said
    assert text(row) == text(encode(TALK))


@pytest.mark.parametrize("options", [{}, {"assistant_only_loss": True}])
def test_columns_may_be_json_and_have_holes(options: dict[str, Any]) -> None:
    import json

    odd = {
        "messages": [
            {**user("1 + 2?"), "tool_calls": None, "name": None},
            assistant(None, tool_calls=[call('{"a": 1, "b": 2}')], reasoning_content=None),
            {"role": "tool", "name": "add", "content": "3", "tool_calls": None},
            assistant("It is 3."),
        ],
        "tools": json.dumps(TOOLS),
    }
    assert encode(odd, **options) == encode(TALK, **options)
    listed = {**TALK, "tools": [json.dumps(schema) for schema in TOOLS]}
    assert encode(listed, **options) == encode(TALK, **options)
    lines = {**TALK, "messages": json.dumps(TALK["messages"])}
    assert encode(lines, **options) == encode(TALK, **options)


def test_from_and_value_are_role_and_content() -> None:
    shared = {
        "conversations": [{"from": "user", "value": "Hi"}, {"from": "assistant", "value": "Ho"}]
    }
    assert encode(shared) == encode({"messages": [user("Hi"), assistant("Ho")]})


def test_a_text_prompt_is_no_conversation_and_only_its_completion_is_learned() -> None:
    row = encode({"prompt": "2 + 2 =", "completion": " 4"})
    assert text(row) == f"2 + 2 = 4{END}"
    assert learned(row) == f" 4{END}"
    whole = encode({"prompt": "2 + 2 =", "completion": " 4"}, completion_only_loss=False)
    assert whole.ids == row.ids
    assert learned(whole) == text(row)


def test_of_messages_the_completion_is_learned_from_the_generation_prompt_on() -> None:
    row = {"prompt": TALK["messages"][:1], "completion": TALK["messages"][1:], "tools": TOOLS}
    completion = encode(row)
    assert text(completion) == text(encode(TALK))
    said = learned(completion)
    assert "1 + 2?" not in said
    assert "<|im_start|>tool\n3" in said
    both = encode(row, assistant_only_loss=True)
    assert learned(both) == learned(encode(TALK, assistant_only_loss=True))
    assert encode(row, completion_only_loss=False) == encode(TALK)


@pytest.mark.report("P031")
def test_a_prompts_own_answers_are_not_learned_with_its_completion() -> None:
    row = {
        "prompt": [user("A?"), assistant("A."), user("B?")],
        "completion": [assistant("B.")],
    }
    assert learned(encode(row, assistant_only_loss=True)) == f"B.{END}"
    whole = learned(encode(row, assistant_only_loss=True, completion_only_loss=False))
    assert whole == f"A.{END}B.{END}"


def test_text_ends_with_the_eos_token_once() -> None:
    assert text(encode({"text": "Once."})) == f"Once.{END}"
    assert text(encode({"text": f"Once.{END}"})) == f"Once.{END}"
    assert encode({"story": "Once."}, dataset_text_field="story") == encode({"text": "Once."})
    row = encode({"text": "Once."})
    assert row.labels == list(row.ids)


def test_a_formatting_function_makes_the_text_of_a_row() -> None:
    row = encode({"q": "2?", "a": "4."}, formatting_func=lambda row: f"{row['q']} {row['a']}")
    assert row == encode({"text": "2? 4."})
    with pytest.raises(UsageError, match="formatting_func returned a list: return the text"):
        encode({"q": "2?"}, formatting_func=lambda row: [row["q"]])


def test_ids_and_labels_are_taken_as_they_are() -> None:
    assert encode({"input_ids": [5, 6, 7]}) == TokenRow((5, 6, 7), (1, 1, 1))
    labelled = {"input_ids": [5, 6, 7], "labels": [-100, 6, -100]}
    assert encode(labelled) == TokenRow((5, 6, 7), (0, 1, 0))
    masked = {"input_ids": [5, 6], "completion_mask": [0, 1]}
    assert encode(masked).labels == [IGNORED, 6]
    with pytest.raises(UsageError, match="each -100 or the id itself"):
        encode({"input_ids": [5, 6], "labels": [5, 9]})


def test_template_options_of_a_row_add_to_those_of_the_run() -> None:
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ style }}{{ tone }}{{ m.content }}"
        "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    tokenizer = byte_level_tokenizer(chat_template=template)
    row = {"messages": [user("Hi")], "chat_template_kwargs": {"style": "S"}}
    options = {"chat_template_kwargs": {"style": "no", "tone": "T"}}
    assert "STHi" in text(encode(row, tokenizer, **options), tokenizer)


def test_tools_that_the_template_has_no_place_for_are_written_by_ours() -> None:
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    tokenizer = byte_level_tokenizer(chat_template=template)
    encoder = RowEncoder(tokenizer, MODEL, SFTConfig())
    row = encoder.encode(TALK)
    assert '"arguments": {"a": 1, "b": 2}' in text(row, tokenizer)
    assert encoder.template is not None  # and saved with the model


@pytest.mark.parametrize(
    ("row", "options", "words"),
    [
        (
            {"note": "Hi"},
            {},
            r"Row 0: the columns \['note'\] can't be learned from: give 'messages'",
        ),
        ({"text": "Hi"}, {"assistant_only_loss": True}, "needs conversations .* has 'text'"),
        (
            {"messages": [user("Hi")]},
            {"completion_only_loss": True},
            "there is assistant_only_loss",
        ),
        ({"messages": [user("Hi")]}, {"assistant_only_loss": True}, "without an assistant message"),
        ({"prompt": "Hi", "completion": [assistant("Ho")]}, {}, "must both be text, or both lists"),
        ({"messages": []}, {}, r"messages=\[\] is no list of messages"),
        ({"messages": "Hi"}, {}, "'Hi' is no JSON"),
        ({"messages": ["Hi"]}, {}, r"Row 0: messages\[0\] is 'Hi': a message is a mapping"),
        ({"messages": [{"content": "Hi"}]}, {}, r"messages\[0\] is .* needs a `role`"),
        (
            {"messages": [user("Hi"), {"role": "assistant"}]},
            {},
            r"Row 0: messages\[1\] of role 'assistant' has no `content` \(its keys: role\)",
        ),
        (
            {"prompt": [user("Hi")], "completion": [assistant(None, tool_calls=[])]},
            {},
            r"completion\[0\] of role 'assistant' has no `content`",
        ),
        (
            {"messages": [user("Hi"), assistant(None, tool_calls="add(1, 2)")]},
            {},
            r"messages\[1\] has tool_calls='add\(1, 2\)': give a list of calls such as",
        ),
        (
            {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]},
            {},
            r'"human": "user", "gpt": "assistant"',
        ),
        ({"messages": None}, {}, r"Row 0: messages is null, .* Leave such rows out: \[row for row"),
        ({"prompt": "Hi", "completion": None}, {}, "completion is null, so there is nothing"),
        ({"prompt": None, "completion": None}, {}, "prompt, completion are null"),
        ({"prompt": "Hi"}, {}, "Rows with a prompt alone are for GRPO"),
        (
            {"instruction": "Add.", "input": "1 2", "output": "3"},
            {},
            r"These are Alpaca's columns; as messages: .*row\[\"instruction\"\] \+",
        ),
        ({"text": 3}, {}, "text=3 is no text"),
        ({"input_ids": [1], "labels": [1, 2]}, {}, "labels must be as many as input_ids"),
    ],
)
def test_what_cannot_be_learned_from_is_told(
    row: dict[str, Any], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        encode(row, **options)


@pytest.mark.parametrize(
    "message",
    [
        assistant("Ho", name="Ann"),
        assistant(None, reasoning_content="Hm."),
        assistant(None, tool_calls=[call({"a": 1, "b": 2})]),
        assistant(None, tool_calls=[{"name": "add", "arguments": '{"a": 1}'}]),
        assistant("", tool_calls=[]),
        assistant("Ho", tool_calls=None),
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "tool", "name": "add", "content": "3", "tool_call_id": "call00000"},
        {"role": "system", "content": "Be brief."},
    ],
)
def test_messages_that_say_something_are_learned_from(message: dict[str, Any]) -> None:
    assert encode({"messages": [message, user("Hi")]}).trained_tokens()


def test_a_role_that_the_template_writes_is_learned_from() -> None:
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    )
    tokenizer = byte_level_tokenizer(chat_template=template)
    row = {"messages": [{"role": "developer", "content": "Be brief."}, user("Hi")]}
    assert "<|im_start|>developer\nBe brief." in text(encode(row, tokenizer), tokenizer)


FOUR_ROLES = (
    "{% for m in messages %}{% if m.role in ['system', 'user', 'assistant', 'tool'] %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""A template that leaves other messages out."""


@pytest.mark.parametrize("options", [{}, {"assistant_only_loss": True}])
@pytest.mark.parametrize(
    ("talk", "words"),
    [
        (
            [{"role": "observer", "content": "Hi"}, user("Hi"), assistant("Ho")],
            r"Row 0: The chat template leaves out messages of role 'observer' \(here message 0\)",
        ),
        (
            [user("Hi"), assistant("Ho"), {"role": "observer", "content": "Hm."}, assistant("Ha")],
            r"of role 'observer', where it is not the first message \(here message 2\)",
        ),
        (
            [{"role": "developer", "content": "Be brief."}, user("Hi"), assistant("Ho")],
            r"role 'developer' .*Call it 'system', or use a template that has it\.",
        ),
    ],
)
def test_a_message_that_leaves_no_trace_is_an_error(
    talk: list[Any], words: str, options: dict[str, Any]
) -> None:
    tokenizer = byte_level_tokenizer(chat_template=FOUR_ROLES)
    with pytest.raises(UsageError, match=words):
        encode({"messages": talk}, tokenizer, **options)


def test_alpaca_rows_become_messages_by_the_line_that_the_error_names() -> None:
    rows = [{"instruction": "Add.", "input": "1 2", "output": "3"}]
    with pytest.raises(UsageError) as raised:
        encode(rows[0])
    line = str(raised.value).partition("as messages: ")[2].removesuffix(".")
    (row,) = eval(line, {"rows": rows})
    assert row == {"prompt": [user("Add.\n1 2")], "completion": [assistant("3")]}
    assert "3" in learned(encode(row))


def test_sharegpt_messages_become_messages_by_the_line_that_the_error_names() -> None:
    conversation = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]
    with pytest.raises(UsageError) as raised:
        encode({"conversations": conversation})
    line = str(raised.value).partition("as messages: ")[2].removesuffix(".")
    assert eval(line, {"conversation": conversation}) == [user("Hi"), assistant("Ho")]


def test_calls_of_tools_that_are_not_listed_are_told_once_with_the_first_row(
    caplog: pytest.LogCaptureFixture,
) -> None:
    args = SFTConfig()
    other = [{"type": "function", "function": {"name": "sum", "description": "", "parameters": {}}}]
    rows = [TALK, {**TALK, "tools": other}, {"messages": [user("Hi")]}, {**TALK, "tools": None}]
    encoder = RowEncoder(TOKENIZER, MODEL, args)
    blocks_of(rows, encoder, args, packing=False, name="train_dataset")
    told = [record.getMessage() for record in caplog.records]
    assert [line.partition(".")[0] for line in told] == [
        "train_dataset[1] calls the tool 'add' and lists 'sum' (2 of 4 rows do the like)"
    ]
    caplog.clear()
    streamed = RowEncoder(TOKENIZER, MODEL, args)
    streamed.encode(TALK, 0)
    streamed.encode(rows[3], 7)
    streamed.encode(rows[3], 8)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("train_dataset[7] calls the tool 'add' and lists none.")
