"""Log probabilities of the trained tokens, without ever holding logits for the whole batch.

A vocabulary is fifty to a hundred times wider than a hidden state, so logits dominate memory. The
transformer runs once; its output head is applied only at positions that predict a trained token,
some at a time, and again in the backward pass instead of being kept (unless the vocabulary is so
small that keeping logits costs less than computing them twice).
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils import checkpoint as recompute

from corral.algorithms.output_head import OutputHead, find_output_head
from corral.algorithms.packing import MicroBatch
from corral.algorithms.routing import Routing, routing_of
from corral.errors import UsageError
from corral.vision import image_positions, rope_owner

# What the backward pass keeps of the output head, for all chunks together, before it is cheaper to
# compute it again. Some five tensors as large as the logits are needed for logprob and entropy.
_KEPT_BYTES = 64 * 2**20
_KEPT_TENSORS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprobs:
    """The model's view of the trained tokens, [N]."""

    logprobs: Tensor
    entropies: Tensor | None
    is_likeliest: Tensor | None = None
    """Whether no token was likelier, as 1.0 and 0.0."""
    routing: Routing | None = None
    """Where the tokens of all rows, trained or not, were sent; with ``chosen`` only."""


def token_logprobs(
    model: nn.Module,
    microbatch: MicroBatch,
    *,
    temperature: float = 1.0,
    chunk_tokens: int = 1024,
    with_entropy: bool = False,
    with_numbers: bool = False,
    chosen: int | None = None,
) -> TokenLogprobs:
    """The logprob of each trained token, and the entropy of the distribution it was drawn from.

    Logits are divided by ``temperature`` in at least float32 before the log-softmax, as the engine
    does when it samples. Gradients flow into both results. Call it under the autocast context that
    training uses; with ``torch.no_grad`` nothing is kept or recomputed.

    Args:
        model: A causal language model of ``transformers``, or a PEFT wrapper of one; not wrapped
            for distribution in a way that needs its own ``forward`` (wrap the caller instead).
        chunk_tokens: How many positions have logits at a time.
        with_numbers: Also give entropies and ``is_likeliest`` to look at, without a gradient.
        chosen: Also give the routing of a mixture of experts that sends each token to so many.
    """
    if temperature <= 0:
        raise UsageError(f"The temperature is {temperature}: training needs one above 0.")
    if chunk_tokens < 1:
        raise UsageError(f"chunk_tokens is {chunk_tokens}: choose 1 or more.")
    head = find_output_head(model, microbatch.input_ids)
    output = _run(model, microbatch, head, with_routers=chosen is not None)
    features = _features(output, microbatch, head)[microbatch.source]
    scorer = _Scorer(
        head=head, temperature=temperature, with_entropy=with_entropy, with_numbers=with_numbers
    )
    is_kept = not torch.is_grad_enabled() or _kept_bytes(head, features) <= _KEPT_BYTES
    # An empty batch still makes one empty chunk, so that its loss has a (zero) gradient.
    chunks = torch.split(features, chunk_tokens)
    targets = torch.split(microbatch.targets, chunk_tokens)
    run = scorer if is_kept else partial(_run_again_in_backward, scorer)
    parts = [run(*pair) for pair in zip(chunks, targets, strict=True)]
    stacked = torch.cat(parts, dim=1)
    return TokenLogprobs(
        logprobs=stacked[0],
        entropies=stacked[1] if with_entropy or with_numbers else None,
        is_likeliest=stacked[-1] if with_numbers else None,
        routing=None
        if chosen is None
        else routing_of(output.router_logits, microbatch.attention_mask, chosen=chosen),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scorer:
    """From features at some positions to [1 to 3, positions]: logprobs, then what was asked for."""

    head: OutputHead | None
    """None when the features are logits already."""
    temperature: float
    with_entropy: bool
    with_numbers: bool = False

    def __call__(self, features: Tensor, targets: Tensor) -> Tensor:
        logits = features if self.head is None else self.head(features)
        precise = torch.promote_types(logits.dtype, torch.float32)
        scaled = logits.to(precise) / self.temperature
        normaliser = scaled.logsumexp(dim=-1)
        logprobs = scaled.gather(-1, targets[:, None]).squeeze(-1) - normaliser
        if self.with_numbers:
            with torch.no_grad():
                is_likeliest = (scaled.argmax(dim=-1) == targets).to(logprobs.dtype)
                entropies = _entropies(scaled, normaliser)
            return torch.stack([logprobs, entropies, is_likeliest])
        if not self.with_entropy:
            return logprobs[None]
        return torch.stack([logprobs, _entropies(scaled, normaliser)])


def _entropies(scaled: Tensor, normaliser: Tensor) -> Tensor:
    probabilities = (scaled - normaliser[:, None]).exp()
    if bool(scaled.detach().amin().isneginf() if scaled.numel() else False):
        # A token that the model rules out has probability 0, and 0 × -inf is nan, in the gradient
        # too. Looked for first: few models do that, and another tensor this wide costs memory.
        scaled = scaled.masked_fill(scaled.isneginf(), 0.0)
    return normaliser - (probabilities * scaled).sum(dim=-1)


def _run_again_in_backward(scorer: _Scorer, features: Tensor, targets: Tensor) -> Tensor:
    return cast(Any, recompute).checkpoint(scorer, features, targets, use_reentrant=False)


def _kept_bytes(head: OutputHead | None, features: Tensor) -> int:
    """What the backward pass would keep to get from these features to logprobs, in float32."""
    weight = getattr(head.projection, "weight", None) if head is not None else None
    vocabulary = features.shape[-1] if weight is None else weight.shape[0]
    return len(features) * int(vocabulary) * 4 * _KEPT_TENSORS


def _positions(model: nn.Module, microbatch: MicroBatch) -> Tensor:
    """[lines, length], or [3, lines, length] where the model counts an image's rows and columns."""
    owner, images = rope_owner(model), microbatch.images
    if owner is None or images is None:
        return microbatch.position_ids
    return image_positions(
        owner,
        microbatch.input_ids,
        images.is_placeholder,
        images.inputs,
        microbatch.attention_mask,
    )


def _run(
    model: nn.Module, microbatch: MicroBatch, head: OutputHead | None, *, with_routers: bool
) -> Any:
    """What the transformer gives, or the whole model where the head can't be applied apart."""
    module: Any = model if head is None else head.transformer
    images = microbatch.images
    return module(
        input_ids=microbatch.input_ids,
        attention_mask=microbatch.attention_mask,
        position_ids=microbatch.position_ids if images is None else _positions(model, microbatch),
        use_cache=False,
        **({} if images is None else images.inputs),
        **({"output_router_logits": True} if with_routers else {}),
    )


def _features(output: Any, microbatch: MicroBatch, head: OutputHead | None) -> Tensor:
    """[lines × length, width] hidden states, or logits when the head can't be applied apart."""
    features: Tensor = output.logits if head is None else output.last_hidden_state
    # Prompt learning puts positions of its own in front.
    return features[:, -microbatch.input_ids.shape[1] :].flatten(0, 1)
