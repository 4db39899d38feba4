"""A conversation gets the same ids and, to the last bit, the same logprobs in any company."""

import asyncio
import random

import pytest

from corral.engines.torch_engine import TorchEngine
from corral.records import Sampled
from support.engine_models import (
    build_model,
    random_prompts,
    reference_logprobs,
    sample_together,
    sampling,
)

COMMON = random_prompts([36], seed=7)[0]
# Prompts of their own, prompts with a common beginning, and the same prompt several times: these
# are computed once and copied, to whom depends on who comes when.
PROMPTS = [
    *random_prompts([random.Random(1).randrange(3, 40) for _ in range(10)]),
    *[COMMON[:length] for length in (20, 30, 35)],
    *[COMMON] * 7,
]
RESULTS = random_prompts([random.Random(2).randrange(1, 9) for _ in range(20)], seed=1)


async def _converse(engine: TorchEngine, index: int, order: random.Random) -> list[Sampled]:
    ids = list(PROMPTS[index])
    turns: list[Sampled] = []
    for turn in range(3):
        await asyncio.sleep(order.random() / 200)
        how = sampling(seed=3 * index + turn, max_new_tokens=2 + index % 9)
        turns.append(await engine.sample(ids, how, key=str(index)))
        ids += [*turns[-1].ids, *RESULTS[index]]
    return turns


async def _play(model, indices: list[int], order: int) -> dict[int, list[Sampled]]:
    engine = TorchEngine(model)
    chance = random.Random(order)
    played = await asyncio.gather(*[_converse(engine, index, chance) for index in indices])
    await engine.aclose()
    return dict(zip(indices, played, strict=True))


@pytest.mark.parametrize("name", ["llama", "wide llama", "qwen3", "gpt2"])
async def test_company_changes_nothing(name: str):
    model = build_model(name)
    together = await _play(model, list(range(20)), order=0)
    for order, company in enumerate(
        [list(range(19, -1, -1)), [3, 7, 11, 18], [5], [15], [12, 13]], start=1
    ):
        for index, turns in (await _play(model, company, order)).items():
            assert turns == together[index]


async def test_a_prompt_that_begins_another_gets_logits_of_its_own():
    """It waits for the keys that the longer one computes, but is not its twin."""
    model = build_model()
    engine = TorchEngine(model)
    prompts = [COMMON, COMMON[:20], COMMON]
    played = await sample_together(engine, prompts, [sampling(seed=1)] * 3)
    for prompt, sampled in zip(prompts, played, strict=True):
        expected = reference_logprobs(model, prompt, sampled.ids)
        assert sampled.logprobs == pytest.approx(expected.tolist(), abs=1e-4)
    assert played[0] == played[2]
    assert engine.stats().reused_tokens >= 19 + 36
    await engine.aclose()
