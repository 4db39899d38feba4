"""What the engine must know about a model before it runs it, and what it cannot run."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from corral.errors import UsageError

_KNOWN_LAYERS = {"full_attention", "sliding_attention"}
_KNOWN_ATTENTION = {"sdpa", "eager"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """The facts about a causal language model that shape its forward passes."""

    model: nn.Module
    """The module whose ``forward`` is called: the model itself, adapters included."""
    layers: int
    vocabulary: int
    context: int | None
    """What the configuration says it was trained for; None if it says nothing."""
    cache_argument: str
    """``cache`` or, in older versions of transformers, ``past_key_values``."""
    attention: str
    """``sdpa`` takes a boolean mask, ``eager`` an additive one."""
    layer_types: tuple[str, ...]
    """The kinds of attention that need a mask; two of them are passed by name."""
    sliding_window: int | None
    has_position_ids: bool
    has_logits_to_keep: bool
    has_router_logits: bool
    """A mixture of experts can say where it sends tokens, which costs memory and needs no telling
    where nothing is learned."""


def inspect_model(model: nn.Module) -> Architecture:
    """Read a model's configuration and ``forward``, or raise UsageError where it cannot be run."""
    # The layers of LoRA (peft) sit inside the base model: calling it skips only the wrapper.
    unwrap: Callable[[], nn.Module] | None = getattr(model, "get_base_model", None)
    if unwrap is not None and getattr(model.active_peft_config, "is_prompt_learning", False):
        raise UsageError(
            "Prompt learning puts tokens before the prompt that the PyTorch engine would not see. "
            "Use LoRA."
        )
    base = model if unwrap is None else unwrap()
    name = type(base).__name__
    config = _text_config(base)
    attention = getattr(config, "_attn_implementation", None) or "eager"
    if attention not in _KNOWN_ATTENTION:
        raise UsageError(
            f"{name} was loaded with attn_implementation={attention!r}; the PyTorch engine needs "
            "its own masks. Load the model with attn_implementation='sdpa'."
        )
    parameters = inspect.signature(base.forward).parameters
    cache_argument = "cache" if "cache" in parameters else "past_key_values"
    if cache_argument not in parameters:
        raise UsageError(f"{name}.forward takes no KV cache; the PyTorch engine cannot run it.")
    return Architecture(
        model=base,
        layers=config.num_hidden_layers,
        vocabulary=config.vocab_size,
        context=getattr(config, "max_position_embeddings", None),
        cache_argument=cache_argument,
        attention=attention,
        layer_types=_layer_types(config, name),
        sliding_window=getattr(config, "sliding_window", None),
        has_position_ids="position_ids" in parameters,
        has_logits_to_keep="logits_to_keep" in parameters,
        has_router_logits="output_router_logits" in parameters,
    )


def _text_config(model: nn.Module) -> Any:
    """Return the configuration of the language part."""
    config = getattr(model, "config", None)
    if config is None:
        raise UsageError(
            f"{type(model).__name__} has no `config`: the PyTorch engine runs causal language "
            "models of transformers."
        )
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def _layer_types(config: Any, name: str) -> tuple[str, ...]:
    """Return the distinct kinds of attention layers, refusing what has other state than KV."""
    declared = getattr(config, "layer_types", None)
    if declared is None:
        is_sliding = getattr(config, "sliding_window", None) is not None
        return ("sliding_attention",) if is_sliding else ("full_attention",)
    unknown = sorted(set(declared) - _KNOWN_LAYERS)
    if unknown:
        raise UsageError(
            f"{name} has layers of type {', '.join(unknown)}; the PyTorch engine runs "
            f"{' and '.join(sorted(_KNOWN_LAYERS))} only. Use another model or engine."
        )
    return tuple(sorted(set(declared)))
