import re
from copy import deepcopy
from typing import Any

import pytest

from corral.env import prepare
from corral.recipes.tool_rows import other_tools
from corral.training.raw_rows import RowShape, read_row
from corral.worlds.catch import Catch
from corral.worlds.guess_number import GuessNumber

GUESS = list(prepare(GuessNumber).tools.schemas)
MOVE = list(prepare(Catch).tools.schemas)
MESSAGES = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]


def talk(tools: Any) -> RowShape:
    return read_row({"messages": MESSAGES, "tools": tools}, "text")


def without_return() -> list[dict[str, Any]]:
    tools = deepcopy(GUESS)
    del tools[0]["function"]["return"]
    return tools


def test_the_environment_s_own_tools_are_as_they_should_be():
    assert other_tools([talk(GUESS), talk(MOVE)], [MOVE, GUESS]) is None
    assert other_tools([talk([])], []) is None
    assert other_tools([read_row({"text": "No talk."}, "text")], [GUESS]) is None


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        (without_return(), "1 of 2 conversations list other tools .*'guess' differs in 'return'"),
        (None, "they list none"),
        (MOVE, "they lack 'guess'"),
        ([*GUESS, *MOVE], "the environment has no 'move'"),
    ],
)
def test_other_tools_are_told_with_the_first_difference(tools: Any, words: str):
    told = other_tools([talk(GUESS), talk(tools)], [GUESS])
    assert told is not None
    assert re.search(words, told), told


def test_another_order_is_another_prompt():
    told = other_tools([talk([*MOVE, *GUESS])], [[*GUESS, *MOVE]])
    assert told is not None
    assert "their order differs" in told
