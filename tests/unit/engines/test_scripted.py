"""The scripted engine cuts turns like a real one, and fails when told to."""

import pytest

from corral.engines.scripted import ScriptedEngine
from corral.errors import InfrastructureFault, UsageError
from corral.records import Finish, SamplingParams


def sampling(max_new_tokens: int = 10) -> SamplingParams:
    return SamplingParams(max_new_tokens=max_new_tokens, stop_ids=frozenset({2}))


async def test_a_function_says_each_turn() -> None:
    engine = ScriptedEngine(lambda key, prompt_ids: [len(prompt_ids), 2, 9], version=4)
    sampled = await engine.sample([7, 7, 7], sampling(), key="a")
    assert sampled.ids == (3, 2)
    assert sampled.logprobs == (-0.5, -0.5)
    assert sampled.finish is Finish.STOP
    assert sampled.version == 4
    assert engine.calls[0].prompt_ids == (7, 7, 7)


async def test_a_mapping_says_the_turns_of_each_conversation_in_order() -> None:
    engine = ScriptedEngine({"a": [[5, 2], [6, 2]], "b": [[7, 2]]})
    turns = [await engine.sample([1], sampling(), key=key) for key in "aba"]
    assert [one.ids for one in turns] == [(5, 2), (7, 2), (6, 2)]
    with pytest.raises(UsageError, match=r"No turn 2 .* 'a'"):
        await engine.sample([1], sampling(), key="a")


@pytest.mark.parametrize(("max_new_tokens", "context"), [(3, 100), (10, 7)])
async def test_a_long_turn_is_cut(max_new_tokens: int, context: int) -> None:
    engine = ScriptedEngine(lambda key, prompt_ids: [5, 6, 7, 8, 2], context=context)
    sampled = await engine.sample([1] * 4, sampling(max_new_tokens), key="a")
    assert sampled.ids == (5, 6, 7)
    assert sampled.finish is Finish.LENGTH


async def test_the_first_calls_can_fail() -> None:
    engine = ScriptedEngine({"a": [[5, 2]]}, fail_first=1)
    with pytest.raises(InfrastructureFault):
        await engine.sample([1], sampling(), key="a")
    assert (await engine.sample([1], sampling(), key="a")).ids == (5, 2)


async def test_a_prompt_without_room_is_refused() -> None:
    engine = ScriptedEngine(lambda key, prompt_ids: [2], context=4)
    with pytest.raises(UsageError, match="4 tokens"):
        await engine.sample([1] * 4, sampling(), key="a")
