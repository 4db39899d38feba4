"""What the engine keeps and shares never mixes up images, and nothing a model writes stops it."""

import asyncio
from typing import Any

import pytest
import torch

from corral.algorithms import collate, token_logprobs
from corral.chat import ChatFormat
from corral.chat.images import Encoded
from corral.engines.torch_engine import TorchEngine
from corral.records import Sample, Sampled, SamplingParams
from support.gallery import picture
from support.tiny_vlms import FAMILIES, tiny_vlm

TOKENS = 5


def prompt_of(chat: ChatFormat, *seeds: int, text: str = "What is it? " * 3) -> Encoded:
    pictures = [{"type": "image", "image": picture(seed, width=48, height=48)} for seed in seeds]
    blocks = [{"type": "text", "text": text}, *pictures, {"type": "text", "text": "Well?"}]
    return chat.prompt(chat.loaded([{"role": "user", "content": blocks}]))


def params(seed: int = 0, **options: Any) -> SamplingParams:
    return SamplingParams(max_new_tokens=TOKENS, stop_ids=frozenset(), seed=seed, **options)


def sample(engine: TorchEngine, prompts: list[Encoded], **options: Any) -> list[Sampled]:
    async def run() -> list[Sampled]:
        sampled = await asyncio.gather(
            *(
                engine.sample_with_images(ids, params(**options), key=f"{place}", images=images)
                for place, (ids, images) in enumerate(prompts)
            )
        )
        await engine.aclose()
        return list(sampled)

    return asyncio.run(run())


def learned(model: Any, prompt: Encoded, sampled: Sampled) -> torch.Tensor:
    before = len(prompt.ids)
    row = Sample(
        ids=(*prompt.ids, *sampled.ids),
        loss_mask=(0,) * before + (1,) * len(sampled.ids),
        logprobs=(0.0,) * before + sampled.logprobs,
        advantage=1.0,
        version=0,
        episode=(0, 0),
        images=prompt.images,
    )
    with torch.no_grad():
        return token_logprobs(model, collate([row], [0], packing=False)).logprobs


def assert_learned(model: Any, prompt: Encoded, sampled: Sampled) -> None:
    gap = learned(model, prompt, sampled) - torch.tensor(sampled.logprobs)
    assert gap.abs().max() < 1e-4


@pytest.fixture(scope="module")
def models() -> dict[str, tuple[Any, ChatFormat]]:
    made = {family: tiny_vlm(family) for family in FAMILIES}
    return {
        family: (model, ChatFormat.for_tokenizer(processor, needs_tools=False))
        for family, (model, processor) in made.items()
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_tokens_with_other_images_share_nothing_beyond_the_first_image(
    models: Any, family: str
) -> None:
    model, chat = models[family]
    engine = TorchEngine(model)
    prompts = [prompt_of(chat, 1), prompt_of(chat, 2), prompt_of(chat, 1)]
    assert prompts[0].ids == prompts[1].ids
    for prompt, sampled in zip(prompts, sample(engine, prompts), strict=True):
        assert_learned(model, prompt, sampled)
    before_image, whole = prompts[0].images[0].start, len(prompts[0].ids)
    assert engine.stats().reused_tokens in (whole, whole + before_image)


def test_two_images_in_another_order_are_another_prompt(models: Any) -> None:
    model, chat = models["qwen2_5_vl"]
    prompts = [prompt_of(chat, 1, 2), prompt_of(chat, 2, 1), prompt_of(chat, 1, 1)]
    for prompt, sampled in zip(prompts, sample(TorchEngine(model), prompts), strict=True):
        assert_learned(model, prompt, sampled)


@pytest.mark.parametrize("chunk", [3, 20, 50])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_pass_cuts_an_image(
    models: Any, family: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.engines.torch_engine.pieces._CHUNK_TOKENS", chunk)
    model, chat = models[family]
    prompts = [
        prompt_of(chat, 1, 2),
        prompt_of(chat, text="No image here. " * 4),
        prompt_of(chat, 3),
    ]
    engine = TorchEngine(model)

    async def run() -> list[Sampled]:
        calls = [
            engine.sample_with_images(ids, params(), key=f"{place}", images=images)
            if images
            else engine.sample(ids, params(), key=f"{place}")
            for place, (ids, images) in enumerate(prompts)
        ]
        return list(await asyncio.gather(*calls))

    for prompt, sampled in zip(prompts, asyncio.run(run()), strict=True):
        assert_learned(model, prompt, sampled)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_placeholder_that_the_model_wrote_stops_nobody(models: Any, family: str) -> None:
    model, chat = models[family]
    ids, images = prompt_of(chat, 1)
    stray = Encoded([*ids, chat.images.token_id, ids[0]], images)
    fine = prompt_of(chat, 2)
    first, second = sample(TorchEngine(model, keep_kv=False), [stray, fine])
    assert len(first.ids) == TOKENS
    assert_learned(model, fine, second)


def test_a_penalty_on_repetitions_takes_no_notice_of_images(models: Any) -> None:
    model, chat = models["llava"]
    prompt = prompt_of(chat, 1)
    (sampled,) = sample(TorchEngine(model), [prompt], repetition_penalty=1.3)
    assert len(sampled.ids) == TOKENS


def test_what_is_sampled_does_not_depend_on_the_company(models: Any) -> None:
    model, chat = models["qwen3_vl"]
    prompts = [prompt_of(chat, seed, text="x" * (7 * seed)) for seed in (1, 2, 3)]
    together = sample(TorchEngine(model), prompts)
    alone = [sample(TorchEngine(model), [prompt])[0] for prompt in prompts]
    assert together == alone
