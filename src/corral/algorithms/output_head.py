"""Finding a model's output head, and proving that applying it apart gives the model's own logits.

Model families scale or cap logits in ways of their own. Instead of listing them all, the head that
was found is compared once with the model's own logits on a few tokens; where they differ the caller
uses the whole model. The same habit decides whether a model keeps packed rows apart.
"""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

logger = logging.getLogger(__name__)

PROBE_TOKENS = 4
"""How many tokens a proof looks at: enough for positions and attention to matter."""

_is_proven: "WeakKeyDictionary[nn.Module, bool]" = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputHead:
    """A transformer, and what turns its hidden states into the model's logits."""

    transformer: nn.Module
    projection: nn.Module
    scale: float = 1.0
    softcap: float | None = None

    def __call__(self, hidden: Tensor) -> Tensor:
        """Logits for hidden states of any leading shape."""
        logits: Tensor = self.projection(hidden)
        if self.scale != 1.0:
            logits = logits * self.scale
        if self.softcap is not None:
            logits = torch.tanh(logits / self.softcap) * self.softcap
        return logits


def find_output_head(model: nn.Module, input_ids: Tensor) -> OutputHead | None:
    """The model's output head, or None when only the whole model gives right logits.

    The proof runs once for each model, in evaluation mode and without gradients, on the first few
    of ``input_ids``.
    """
    inner = _without_adapters(model)
    head = None if inner is None else _candidate(inner)
    if inner is None or head is None:
        return None
    if inner not in _is_proven:
        _is_proven[inner] = _gives_same_logits(model, head, input_ids[:1, :PROBE_TOKENS])
        if not _is_proven[inner]:
            logger.warning(
                "%s changes its logits in a way that is not known here; computing logits for whole "
                "batches, which takes more memory.",
                type(inner).__name__,
            )
    return head if _is_proven[inner] else None


def keeps_packed_rows_apart(model: nn.Module, *, tolerance: float = 1e-3) -> bool:
    """Whether rows in one packed line leave each other alone; linear-attention models may not."""
    ids = torch.arange(1, 2 * PROBE_TOKENS + 1, device=next(model.parameters()).device)[None]
    halves = torch.split(ids, PROBE_TOKENS, dim=1)
    positions = torch.arange(PROBE_TOKENS, device=ids.device)[None]
    call = cast(Any, model)
    with _evaluating(model), torch.no_grad():
        packed = call(input_ids=ids, position_ids=positions.repeat(1, 2), use_cache=False).logits
        alone = [
            call(input_ids=part, position_ids=positions, use_cache=False).logits for part in halves
        ]
    return _is_close(packed, torch.cat(alone, dim=1), tolerance=tolerance)


def _without_adapters(model: nn.Module) -> Any | None:
    """The model inside a PEFT wrapper; None for prompt learning, which adds tokens of its own."""
    wrapper = cast(Any, model)
    if not hasattr(model, "get_base_model"):
        return wrapper
    if wrapper.active_peft_config.is_prompt_learning:
        return None
    return wrapper.get_base_model()


def _candidate(inner: Any) -> OutputHead | None:
    projection = inner.get_output_embeddings() if hasattr(inner, "get_output_embeddings") else None
    transformer = _transformer(inner)
    if transformer is None or not isinstance(projection, nn.Module):
        return None
    config = inner.config
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    scale = getattr(text, "logit_scale", None) or 1.0 / (getattr(text, "logits_scaling", None) or 1)
    return OutputHead(
        transformer=transformer,
        projection=projection,
        scale=float(scale),
        softcap=getattr(text, "final_logit_softcapping", None),
    )


def _transformer(inner: Any) -> nn.Module | None:
    prefixed = getattr(inner, getattr(inner, "base_model_prefix", "") or "model", None)
    if isinstance(prefixed, nn.Module) and prefixed is not inner:
        return prefixed
    decoder = inner.get_decoder() if hasattr(inner, "get_decoder") else None
    return decoder if isinstance(decoder, nn.Module) and decoder is not inner else None


def _gives_same_logits(model: nn.Module, head: OutputHead, input_ids: Tensor) -> bool:
    whole, transformer = cast(Any, model), cast(Any, head.transformer)
    with _evaluating(model), torch.no_grad():
        expected: Tensor = whole(input_ids=input_ids, use_cache=False).logits
        output = transformer(input_ids=input_ids, use_cache=False)
        hidden = getattr(output, "last_hidden_state", None)
        if not isinstance(hidden, Tensor):
            return False
        actual = head(hidden)
    is_precise = torch.finfo(actual.dtype).bits >= 32
    return _is_close(actual, expected, tolerance=1e-4 if is_precise else 2e-2)


def _is_close(actual: Tensor, expected: Tensor, *, tolerance: float) -> bool:
    if actual.shape != expected.shape:
        return False
    # Tokens that a model rules out have a logit of -inf, or the least number there is: beside that,
    # all others would be close to each other.
    lowest = torch.finfo(expected.dtype).min / 2
    is_ruled_out = expected < lowest
    if not torch.equal(actual < lowest, is_ruled_out):
        return False
    others = torch.where(is_ruled_out, 0.0, expected).float()
    largest = others.abs().max().clamp(min=1e-6)
    difference = torch.where(is_ruled_out, 0.0, actual).float() - others
    return bool(difference.abs().max() <= tolerance * largest)


@contextmanager
def _evaluating(model: nn.Module) -> Generator[None, None, None]:
    """Evaluation mode for a while; dropout would make two equal computations differ.

    An autocast context keeps the weights it cast, and some releases of torch hand those cast
    without gradients to the training forward that follows, which then trains nothing.
    """
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        torch.clear_autocast_cache()
        for module in training:
            module.training = True
