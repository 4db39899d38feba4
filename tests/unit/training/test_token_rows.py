"""Which tokens a row becomes, and which of them are learned."""

from typing import Any

import pytest

from corral import SFTConfig
from corral.errors import UsageError
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
        ({"messages": ["Hi"]}, {}, "'Hi', which is no message"),
        ({"messages": [{"content": "Hi"}]}, {}, "without a role"),
        ({"text": 3}, {}, "text=3 is no text"),
        ({"input_ids": [1], "labels": [1, 2]}, {}, "labels must be as many as input_ids"),
    ],
)
def test_what_cannot_be_learned_from_is_told(
    row: dict[str, Any], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        encode(row, **options)
