"""What the tokenizer of a scratch model writes is read as it was meant."""

from typing import Literal

import pytest

from corral.env import prepare
from corral.recipes.scratch import scratch_tokenizer
from corral.records import Finish, ToolCall
from corral.training.models import chat_format
from corral.worlds import WORLDS, world_of
from corral.worlds.play import play_episodes
from support.worlds_here import WORLDS_HERE


@pytest.mark.parametrize("name", WORLDS_HERE)
def test_the_calls_of_a_solver_are_read_back(name: str):
    world = WORLDS[name]
    tokenizer, tools = scratch_tokenizer(world), prepare(world.factory).tools.schemas
    chat = chat_format(tokenizer, None, tools, {})
    for game in play_episodes(world, world.policy("random"), episodes=3, seed=0):
        for turn in game.turns:
            call = ToolCall(name=turn.action.tool, arguments=turn.action.arguments)
            part = call.as_message_part()
            ids = chat.turn_ids({"role": "assistant", "content": "", "tool_calls": [part]})
            assert chat.parse(ids, finish=Finish.STOP).calls == (call,)


class Dial:
    """A dial with two marks."""

    def reset(self, **row: object) -> str:
        self.done = False
        return "A dial."

    def turn(self, to: Literal[1, 2]) -> str:
        """Turn it.

        Args:
            to: The mark.
        """
        self.done = True
        return str(to)


def test_choices_may_be_numbers():
    words = scratch_tokenizer(world_of(Dial, name="dial")).get_vocab()
    assert "turn(to: 1|2)" in words
    assert '<tool_call>{"name": "turn", "arguments": {"to": 2' in words
