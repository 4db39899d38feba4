"""The engine samples what the model itself would: greedy ids, logprobs, any architecture."""

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from corral.engines.torch_engine import TorchEngine
from corral.records import Sampled, SamplingParams

VOCABULARY = 199
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
MODELS = {
    "llama": (LlamaForCausalLM, LlamaConfig, SIZES),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config, SIZES),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, SIZES | {"head_dim": 8}),
    "mistral sliding": (MistralForCausalLM, MistralConfig, SIZES | {"sliding_window": 6}),
    "gemma3 mixed": (
        Gemma3ForCausalLM,
        Gemma3TextConfig,
        SIZES
        | {"head_dim": 8, "sliding_window": 6}
        | {"layer_types": ["sliding_attention", "full_attention"]},
    ),
    "gpt2": (
        GPT2LMHeadModel,
        GPT2Config,
        {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128}
        | {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0},
    ),
}


def build(name: str, attention: str = "sdpa") -> Any:
    torch.manual_seed(0)
    model_class, config_class, sizes = MODELS[name]
    config = config_class(**sizes)
    config._attn_implementation = attention
    model = model_class(config)
    for parameter in model.parameters():  # sharp distributions: a wrong mask shows
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def prompts(lengths: Sequence[int], seed: int = 0) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(3, VOCABULARY, (n,), generator=generator).tolist() for n in lengths]


def params(**changes: Any) -> SamplingParams:
    return SamplingParams(**({"max_new_tokens": 12, "stop_ids": frozenset()} | changes))


def sample_all(
    engine: TorchEngine, asked: Sequence[Sequence[int]], how: Sequence[SamplingParams]
) -> list[Sampled]:
    async def run() -> list[Sampled]:
        calls = [
            engine.sample(ids, one, key=f"{i}")
            for i, (ids, one) in enumerate(zip(asked, how, strict=True))
        ]
        return await asyncio.gather(*calls)

    return asyncio.run(run())


def reference_logprobs(model: Any, prompt: Sequence[int], ids: Sequence[int], temperature: float):
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*prompt, *ids]])).logits[0]
    logprobs = (logits[len(prompt) - 1 : -1].float() / temperature).log_softmax(-1)
    return logprobs[torch.arange(len(ids)), torch.tensor(ids)]


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("name", MODELS)
def test_greedy_ids_equal_those_of_generate(name: str, attention: str) -> None:
    model = build(name, attention)
    asked = prompts((5, 30, 17, 40, 3))
    sampled = sample_all(
        TorchEngine(model, max_batch=3), asked, [params(temperature=0)] * len(asked)
    )
    for ids, one in zip(asked, sampled, strict=True):
        expected = model.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            max_new_tokens=12,
            do_sample=False,
            eos_token_id=None,
        )[0, len(ids) :]
        assert list(one.ids) == expected.tolist()
        torch.testing.assert_close(
            torch.tensor(one.logprobs),
            reference_logprobs(model, ids, one.ids, 1.0),
            atol=1e-5,
            rtol=0,
        )


@pytest.mark.parametrize("name", ["qwen3", "gpt2"])
def test_logprobs_are_those_of_the_full_forward_at_the_sampling_temperature(name: str) -> None:
    model = build(name)
    asked = prompts((5, 21, 9))
    temperatures = (1.0, 0.7, 1.6)
    sampled = sample_all(
        TorchEngine(model),
        asked,
        [params(temperature=t, seed=i) for i, t in enumerate(temperatures)],
    )
    for ids, one, temperature in zip(asked, sampled, temperatures, strict=True):
        expected = reference_logprobs(model, ids, one.ids, temperature)
        torch.testing.assert_close(torch.tensor(one.logprobs), expected, atol=1e-5, rtol=0)


def test_samples_do_not_depend_on_the_company() -> None:
    model = build("llama")
    asked = prompts((12, 7, 25, 31, 4, 18))
    how = [params(seed=100 + i, max_new_tokens=3 + 4 * i) for i in range(len(asked))]
    together = sample_all(TorchEngine(model, max_batch=4), asked, how)
    for i, (ids, one) in enumerate(zip(asked, how, strict=True)):
        alone = sample_all(TorchEngine(model), [ids], [one])[0]
        assert alone.ids == together[i].ids
        assert math.isclose(sum(alone.logprobs), sum(together[i].logprobs), abs_tol=1e-4)
