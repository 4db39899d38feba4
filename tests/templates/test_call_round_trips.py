"""Whatever arguments a call has, what a template writes of it reads back as that call."""

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.chat import ChatFormat
from corral.records import Finish, ToolCall
from support.family_templates import CASES, family_tokenizer
from support.template_episodes import rows_of_page
from support.toy_tokenizers import byte_level_tokenizer
from support.trl_templates import dress, template_files

KINDS: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "other": {"type": "string"},
    "n": {"type": "integer"},
    "x": {"type": "number"},
    "on": {"type": "boolean"},
    "maybe": {"type": "integer", "nullable": True},
    "list": {"type": "array"},
    "map": {"type": "object"},
}
TOOL = {
    "type": "function",
    "function": {
        "name": "act",
        "description": "Act.",
        "parameters": {"type": "object", "properties": KINDS, "required": []},
    },
}
RAW = {"lfm2_2_5", "lfm2_2_5_v2"}
"""Templates that write text without escaping it: a backslash in it reads as an escape."""
OWN = [row.split(" | ")[0].removeprefix("| ") for row in rows_of_page() if "| its own |" in row]
ONCE = [name for name in OWN if not name.endswith("_training")]
"""Those for training write calls as the others do."""


def texts(name: str) -> st.SearchStrategy[str]:
    """Text full of what stands around text, control tokens and tags included."""
    syntax = chat_of(name).syntax
    marks = [syntax.closes, *syntax.reasoning, "</parameter>", "</arg_value>", "</atem:parameter>"]
    signs = "ab5 \n\t'\"{}[]<>|:,()/é🙂\u2028" + ("" if name in RAW else "\\=")
    words = ["null", "true", "None", "5", "1e5", *marks, *chat_of(name).control.texts.values()]
    return st.lists(st.sampled_from([*signs, *words]), max_size=12).map("".join)


def arguments(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments that fit the tool."""
    text = texts(name)
    floats = st.floats(allow_nan=False, allow_infinity=False)
    scalars = st.none() | st.booleans() | st.integers() | floats | text
    keys = st.text(st.sampled_from("abé_ -"), min_size=1, max_size=4).filter(
        lambda key: key == key.strip()
    )
    values = st.recursive(
        scalars, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=6
    )
    kinds = {
        **{"text": text, "other": text, "n": st.integers(), "x": floats, "on": st.booleans()},
        **{"maybe": st.none() | st.integers(), "list": st.lists(values)},
        "map": st.dictionaries(keys, values),
    }
    return st.fixed_dictionaries({}, optional=kinds)


@cache
def chat_of(name: str) -> ChatFormat:
    if name in CASES:
        tokenizer, stops = family_tokenizer(name)
    else:
        file = next(path for path in template_files() if path.stem == name)
        tokenizer = byte_level_tokenizer()
        stops = dress(tokenizer, file)
    return ChatFormat.for_tokenizer(tokenizer, extra_stop_ids=stops, tools=[TOOL])


@pytest.mark.parametrize("name", [*ONCE, *CASES])
def test_a_rendered_call_reads_back_as_itself(name: str) -> None:
    chat = chat_of(name)

    @settings(max_examples=12, derandomize=True)
    @given(st.lists(arguments(name), min_size=1, max_size=1 if one_at_a_time(name) else 3))
    def check(given_arguments: list[dict[str, Any]]) -> None:
        calls = [ToolCall(name="act", arguments=each) for each in given_arguments]
        parts = [call.as_message_part() for call in calls]
        ids = chat.turn_ids({"role": "assistant", "content": "", "tool_calls": parts})
        read = chat.parse(ids, finish=Finish.STOP).calls
        assert list(map(written, read)) == list(map(written, calls))

    check()


def one_at_a_time(name: str) -> bool:
    return any(row.startswith(f"| {name} |") and row.endswith("| no |") for row in rows_of_page())


def written(call: Any) -> str:
    return f"{call.name} {json.dumps(call.arguments, sort_keys=True)}"
