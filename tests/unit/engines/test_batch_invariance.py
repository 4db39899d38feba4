"""A conversation gets the same ids and, to the last bit, the same logprobs in any company."""

import asyncio
import random

import pytest

from corral.engines.torch_engine import TorchEngine
from corral.records import Sampled
from support.engine_models import build_model, random_prompts, sampling

PROMPTS = random_prompts([random.Random(1).randrange(3, 40) for _ in range(20)])
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


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2"])
async def test_company_changes_nothing(name: str):
    model = build_model(name)
    together = await _play(model, list(range(20)), order=0)
    for order, company in enumerate([list(range(19, -1, -1)), [3, 7, 11], [5]], start=1):
        for index, turns in (await _play(model, company, order)).items():
            assert turns == together[index]
