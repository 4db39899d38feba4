"""Tiny models with sharp distributions, and short ways to sample from an engine."""

import asyncio
from collections.abc import Sequence
from typing import Any

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
CONTEXT = 128
_SPECIAL = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
_SIZES: dict[str, Any] = _SPECIAL | {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
}
_GPT2_SIZES: dict[str, Any] = _SPECIAL | {
    "vocab_size": VOCABULARY,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": CONTEXT,
}
# Large enough to be worth packing, in the proportions of SmolLM2-135M.
_WIDE: dict[str, Any] = _SIZES | {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
}
_MIXED = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 6}
MODELS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "llama": (LlamaForCausalLM, LlamaConfig, _SIZES),
    "wide llama": (LlamaForCausalLM, LlamaConfig, _WIDE),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config, _SIZES),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, _SIZES | {"head_dim": 8}),
    "mistral sliding": (MistralForCausalLM, MistralConfig, _SIZES | {"sliding_window": 6}),
    "gemma3 mixed": (Gemma3ForCausalLM, Gemma3TextConfig, _SIZES | {"head_dim": 8} | _MIXED),
    "gpt2": (GPT2LMHeadModel, GPT2Config, _GPT2_SIZES),
}


def build_model(name: str = "llama", attention: str = "sdpa") -> Any:
    """Return a model in evaluation mode whose next token depends strongly on its context."""
    torch.manual_seed(0)
    model_class, config_class, sizes = MODELS[name]
    config = config_class(**sizes)
    config._attn_implementation = attention
    model = model_class(config)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3 * (32 / config.hidden_size) ** 0.5)
    return model.eval()


def random_prompts(lengths: Sequence[int], seed: int = 0) -> list[list[int]]:
    """Return prompts without special ids."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(3, VOCABULARY, (n,), generator=generator).tolist() for n in lengths]


def sampling(**changes: Any) -> SamplingParams:
    """Return parameters for a short turn without stop ids."""
    return SamplingParams(**({"max_new_tokens": 12, "stop_ids": frozenset()} | changes))


async def sample_together(
    engine: TorchEngine,
    prompts: Sequence[Sequence[int]],
    how: Sequence[SamplingParams],
    keys: Sequence[str] | None = None,
) -> list[Sampled]:
    """Sample one turn of several conversations at once."""
    keys = keys or [f"conversation {i}" for i in range(len(prompts))]
    calls = [
        engine.sample(ids, one, key=key) for ids, one, key in zip(prompts, how, keys, strict=True)
    ]
    return await asyncio.gather(*calls)


def reference_logprobs(
    model: Any, prompt: Sequence[int], ids: Sequence[int], temperature: float = 1.0
) -> torch.Tensor:
    """Return the logprobs of ``ids`` after ``prompt`` by one plain pass."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*prompt, *ids]])).logits[0]
    logprobs = (logits[len(prompt) - 1 : -1].float() / temperature).log_softmax(-1)
    return logprobs[torch.arange(len(ids)), torch.tensor(ids)]
