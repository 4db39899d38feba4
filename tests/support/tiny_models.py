"""Tiny random models with their tokenizers: objects, or folders that ``from_pretrained`` reads."""

from pathlib import Path
from typing import Any

import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from support.template_zoo import template
from support.toy_tokenizers import byte_level_tokenizer

CONTEXT = 1024
_SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": CONTEXT,
}
FAMILIES: dict[str, tuple[Any, Any]] = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    "qwen3_moe": (Qwen3MoeConfig, Qwen3MoeForCausalLM),
}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}


def tiny_tokenizer(**options: Any) -> Any:
    """A byte-level tokenizer whose template takes tools."""
    return byte_level_tokenizer(**({"chat_template": template()} | options))


def tiny_model(
    tokenizer: Any, *, family: str = "llama", seed: int = 0, spread: float = 0.1, **sizes: Any
) -> Any:
    """A random model of a few thousand weights.

    Args:
        spread: Standard deviation of the weights. The larger, the more the next token depends on
            what came before it.
    """
    config_class, model_class = FAMILIES[family]
    if family == "qwen3_moe":
        sizes = _EXPERTS | sizes
    config = config_class(
        vocab_size=len(tokenizer),
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=family == "llama",
        initializer_range=spread,
        **(_SIZES | sizes),
    )
    torch.manual_seed(seed)
    return model_class(config)


def save_tiny_model(folder: Path, *, family: str = "llama", seed: int = 0, **sizes: Any) -> Path:
    """Write a tiny model and its tokenizer to ``folder``."""
    tokenizer = tiny_tokenizer()
    tiny_model(tokenizer, family=family, seed=seed, **sizes).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
