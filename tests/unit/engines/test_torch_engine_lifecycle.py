"""Limits, errors, cancellation and event loops: a call always ends."""

import asyncio
from typing import Any

import pytest

from corral.engines.torch_engine import TorchEngine
from corral.errors import InfrastructureFault, UsageError
from corral.records import Finish
from support.engine_models import (
    CONTEXT,
    VOCABULARY,
    build_model,
    random_prompts,
    sample_together,
    sampling,
)


@pytest.mark.report("P039")
async def test_a_turn_ends_with_its_stop_id() -> None:
    model = build_model()
    prompt = random_prompts([10])[0]
    free = await TorchEngine(model).sample(prompt, sampling(temperature=0), key="a")
    stop = free.ids[4]
    stopped = await TorchEngine(model).sample(
        prompt, sampling(temperature=0, stop_ids=frozenset({stop, 1, 2})), key="a"
    )
    assert stopped.ids == free.ids[: free.ids.index(stop) + 1]
    assert stopped.finish is Finish.STOP
    assert free.finish is Finish.LENGTH


async def test_a_turn_ends_where_the_context_does() -> None:
    engine = TorchEngine(build_model("gpt2"))
    prompt = random_prompts([CONTEXT - 5])[0]
    sampled = await engine.sample(prompt, sampling(max_new_tokens=100), key="a")
    assert len(sampled.ids) == 5
    assert sampled.finish is Finish.LENGTH


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([], "empty"),
        ([5] * 64, "64 tokens.*context of 64"),
        ([5, VOCABULARY], f"id {VOCABULARY} is outside"),
    ],
)
async def test_wrong_prompts_are_refused_with_the_reason(prompt: list[int], message: str) -> None:
    engine = TorchEngine(build_model(), max_context=64)
    assert engine.max_context() == 64
    with pytest.raises(UsageError, match=message):
        await engine.sample(prompt, sampling(), key="a")


async def test_an_error_in_the_model_fails_all_turns_and_the_engine_recovers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = build_model()
    engine = TorchEngine(model, max_batch=2)
    prompts = random_prompts([5, 6, 7])
    expected = await sample_together(engine, prompts, [sampling()] * 3)

    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(engine._scheduler.forward, "decode", broken)
        calls = [engine.sample(ids, sampling(), key="x") for ids in prompts]
        for result in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(result, InfrastructureFault)
            assert "out of memory" in str(result)
    again = await sample_together(engine, prompts, [sampling()] * 3)
    assert [one.ids for one in again] == [one.ids for one in expected]


async def test_a_cancelled_turn_frees_its_row() -> None:
    engine = TorchEngine(build_model(), max_batch=1)
    prompts = random_prompts([5, 6])
    first = asyncio.create_task(engine.sample(prompts[0], sampling(max_new_tokens=110), key="slow"))
    waiting = asyncio.create_task(engine.sample(prompts[1], sampling(), key="next"))
    await asyncio.sleep(0.01)
    first.cancel()
    assert len((await waiting).ids) == 12
    assert first.cancelled()
    assert not engine._scheduler.memory.rows.busy.any()


def test_one_engine_serves_several_event_loops() -> None:
    engine = TorchEngine(build_model())
    prompt = random_prompts([9])[0]
    first = asyncio.run(engine.sample(prompt, sampling(seed=5), key="a"))
    second = asyncio.run(engine.sample(prompt, sampling(seed=5), key="b"))
    assert first.ids == second.ids


def test_a_loop_that_ends_in_the_middle_of_a_turn_leaves_the_engine_usable() -> None:
    engine = TorchEngine(build_model())
    prompts = random_prompts([9, 12])

    async def give_up() -> None:
        async with asyncio.timeout(0.01):
            await engine.sample(prompts[0], sampling(max_new_tokens=110), key="a")

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    assert len(asyncio.run(engine.sample(prompts[1], sampling(), key="b")).ids) == 12


async def test_closing_fails_what_is_under_way() -> None:
    engine = TorchEngine(build_model())
    prompt = random_prompts([9])[0]
    turn = asyncio.create_task(engine.sample(prompt, sampling(max_new_tokens=110), key="a"))
    await asyncio.sleep(0.01)
    await engine.aclose()
    with pytest.raises(InfrastructureFault, match="closed"):
        await turn
    assert len((await engine.sample(prompt, sampling(), key="a")).ids) == 12
    await engine.aclose()


async def test_training_flags_are_back_when_the_last_turn_is_delivered() -> None:
    model = build_model("gpt2").train()
    model.transformer.h[0].eval()
    flags = [module.training for module in model.modules()]
    seen: list[bool] = []
    model.lm_head.register_forward_hook(lambda module, *_: seen.append(module.training))
    engine = TorchEngine(model)
    await engine.sample(random_prompts([9])[0], sampling(), key="a")
    assert [module.training for module in model.modules()] == flags
    assert not any(seen)


async def test_the_event_loop_stays_free_while_the_model_runs() -> None:
    engine = TorchEngine(build_model())
    turn = asyncio.create_task(
        engine.sample(random_prompts([9])[0], sampling(max_new_tokens=110), key="a")
    )
    ticks = 0
    while not turn.done():
        await asyncio.sleep(0.001)
        ticks += 1
    assert ticks > 3
