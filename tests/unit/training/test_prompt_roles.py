"""Prompts with messages that the chat template leaves out."""

from typing import Any

import pytest

from corral.chat import ChatFormat
from corral.env import prepare
from corral.errors import UsageError
from corral.training.prompt_roles import check_prompt_roles
from support.toy_tokenizers import byte_level_tokenizer

TEMPLATE = (
    "{% for m in messages %}{% if m.role != 'developer' %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class Anything:
    def reset(self, **row: Any) -> None: ...


def prompt(role: str) -> list[dict[str, str]]:
    return [{"role": role, "content": "Be brief."}, {"role": "user", "content": "Go."}]


def test_rows_are_named_whose_prompt_would_be_shown_without_a_message() -> None:
    tokenizer = byte_level_tokenizer(chat_template=TEMPLATE)
    chat = ChatFormat.for_tokenizer(tokenizer, needs_tools=False)
    tools = {"any": prepare(Anything).tools}
    rows = [{"prompt": prompt(role), "environment": "any"} for role in ("system", "observer")]
    check_prompt_roles([*rows, {"prompt": "Go.", "environment": "any"}], tools, chat)
    rows.append({"prompt": prompt("developer"), "environment": "any"})
    with pytest.raises(UsageError, match=r"eval\[2\]: The chat template leaves .*'developer'"):
        check_prompt_roles(rows, tools, chat, name="eval")
    with pytest.raises(UsageError, match="leaves out messages of role 'developer'"):
        chat.prompt(rows[2]["prompt"])  # rows of a stream are not known before they are played
