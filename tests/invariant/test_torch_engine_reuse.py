"""What is in the cache already is not computed again, and changes no sample."""

from typing import Any

import pytest

from corral.engines.torch_engine import TorchEngine, scheduler
from corral.engines.torch_engine.sampler import sample_rows
from support.engine_models import build_model, random_prompts, sample_together, sampling


async def play(engine: TorchEngine, *, conversations: int = 5, turns: int = 3) -> list[list[int]]:
    """Several conversations of a few turns, each turn followed by the ids of a tool's answer."""
    histories = random_prompts([9 + 4 * i for i in range(conversations)])
    for turn in range(turns):
        how = [sampling(seed=100 * turn + i, max_new_tokens=4 + i) for i in range(conversations)]
        sampled = await sample_together(engine, histories, how)
        answers = random_prompts([3 + i for i in range(conversations)], seed=turn)
        for history, one, answer in zip(histories, sampled, answers, strict=True):
            history += [*one.ids, *answer]
    return histories


@pytest.mark.parametrize("name", ["llama", "gemma3 mixed"])
async def test_turns_are_the_same_with_and_without_kept_caches(name: str) -> None:
    model = build_model(name)
    kept, fresh = TorchEngine(model), TorchEngine(model, keep_kv=False)
    assert await play(kept) == await play(fresh)
    assert fresh.stats().reused_tokens == 0
    assert kept.stats().prefill_tokens < fresh.stats().prefill_tokens / 2


@pytest.mark.report("P143")
async def test_a_later_turn_prefills_only_its_new_tokens() -> None:
    engine = TorchEngine(build_model())
    prompt = random_prompts([20])[0]
    first = await engine.sample(prompt, sampling(max_new_tokens=6), key="a")
    before = engine.stats()
    await engine.sample([*prompt, *first.ids, 7, 8, 9], sampling(), key="a")
    # The last sampled token never went through the model, and three came from the tool.
    assert engine.stats().prefill_tokens - before.prefill_tokens == 4
    assert engine.stats().reused_tokens - before.reused_tokens == 20 + 6 - 1


async def test_a_prompt_that_diverges_reuses_the_common_prefix() -> None:
    model = build_model()
    engine = TorchEngine(model)
    prompt = random_prompts([40])[0]
    await engine.sample(prompt, sampling(), key="a")
    changed = [*prompt[:30], 5, 6, 7]
    sampled = await engine.sample(changed, sampling(seed=3), key="a")
    assert engine.stats().reused_tokens == 30
    expected = await TorchEngine(model).sample(changed, sampling(seed=3), key="a")
    assert sampled.ids == expected.ids


async def test_a_group_prefills_its_common_prompt_once() -> None:
    model = build_model()
    prompt = random_prompts([25])[0]
    how = [sampling(seed=i) for i in range(6)]
    engine = TorchEngine(model)
    sampled = await sample_together(engine, [prompt] * 6, how)
    assert engine.stats().prefill_tokens == 25
    assert engine.stats().reused_tokens == 5 * 25
    expected = await sample_together(TorchEngine(model, keep_kv=False), [prompt] * 6, how)
    assert [one.ids for one in sampled] == [one.ids for one in expected]
    assert len({one.ids for one in sampled}) > 1


async def test_tasks_with_a_common_beginning_compute_it_once() -> None:
    model = build_model()
    common = random_prompts([30])[0]
    prompts = [[*common, *tail] for tail in random_prompts([4, 9, 6], seed=1)]
    how = [sampling(seed=i) for i in range(3)]
    engine = TorchEngine(model)
    sampled = await sample_together(engine, prompts, how)
    assert engine.stats().prefill_tokens == 30 + 4 + 9 + 6
    expected = await sample_together(TorchEngine(model, keep_kv=False), prompts, how)
    assert [one.ids for one in sampled] == [one.ids for one in expected]


async def test_groups_larger_than_the_batch_still_share_their_prompt() -> None:
    engine = TorchEngine(build_model(), max_batch=2)
    prompt = random_prompts([40])[0]
    await sample_together(engine, [prompt] * 6, [sampling(seed=i) for i in range(6)])
    assert engine.stats().prefill_tokens < 2 * 40


@pytest.mark.report("P068", "P158")
async def test_new_weights_drop_all_caches_and_mark_the_samples() -> None:
    model = build_model()
    engine = TorchEngine(model)
    prompt = random_prompts([20])[0]
    assert (await engine.sample(prompt, sampling(), key="a")).version == 0
    with_old = engine.stats().reused_tokens
    model.lm_head.weight.data.neg_()
    model.model.layers[0].mlp.up_proj.weight.data.neg_()
    engine.weights_changed(3)
    sampled = await engine.sample(prompt, sampling(), key="a")
    assert sampled.version == 3
    assert engine.stats().reused_tokens == with_old
    assert sampled.ids == (await TorchEngine(model).sample(prompt, sampling(), key="a")).ids


@pytest.mark.report("P068")
async def test_a_turn_is_of_the_weights_it_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = TorchEngine(build_model())
    draws: list[int] = []

    def changing(*args: Any) -> Any:
        draws.append(1)
        if len(draws) == 3:
            engine.weights_changed(7)
        return sample_rows(*args)

    monkeypatch.setattr(scheduler, "sample_rows", changing)
    prompt = random_prompts([20])[0]
    first = await engine.sample(prompt, sampling(max_new_tokens=8), key="a")
    assert (first.version, len(draws)) == (0, 8)
    assert (await engine.sample(prompt, sampling(), key="a")).version == 7


async def test_rows_are_swapped_and_evicted_without_changing_samples() -> None:
    model = build_model()
    # Room for four conversations of a context each: eight conversations evict each other.
    one_token = 2 * 2 * 2 * 8 * 4
    tight = TorchEngine(model, max_batch=4, kv_budget_bytes=4 * 256 * one_token)
    roomy = TorchEngine(model)
    assert await play(tight, conversations=8) == await play(roomy, conversations=8)
    assert tight.stats().reused_tokens < roomy.stats().reused_tokens


async def test_a_released_conversation_gives_up_its_row() -> None:
    engine = TorchEngine(build_model(), max_batch=2)
    for i, prompt in enumerate(random_prompts([10] * 20)):
        await engine.sample(prompt, sampling(max_new_tokens=2), key=str(i))
        engine.release(str(i))
    assert len(engine._scheduler.memory.rows) == 16
