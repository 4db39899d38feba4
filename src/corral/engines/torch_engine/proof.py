"""The proof that a model gives the same logits through the slot cache as by itself."""

import numpy as np
import torch

from corral.engines.torch_engine.architecture import Architecture
from corral.engines.torch_engine.forward import Forward, Piece, evaluation_mode
from corral.errors import UsageError

# Far above the rounding of bfloat16 logits of any size met in practice relative to their spread,
# far below the effect of a wrong position or mask.
_TOLERANCE = 0.05


def prove_cached_logits(forward: Forward) -> int:
    """Compare two ragged rows, prefilled and decoded through the cache, with plain passes.

    The cache is empty before and after.

    Returns:
        The bytes of cache that one token takes.

    Raises:
        UsageError: The model reads its masks or positions in a way the engine does not know.
    """
    architecture = forward.architecture
    rows = [np.arange(9) % architecture.vocabulary, np.arange(3, 8) % architecture.vocabulary]
    forward.cache.resize(len(rows), 16, [0] * len(rows))
    with evaluation_mode(architecture.model):
        pieces = [Piece(slot=slot, start=0, ids=ids[:-1]) for slot, ids in enumerate(rows)]
        try:
            forward.prefill(pieces)
            last = np.array([len(ids) - 1 for ids in rows])
            tokens = np.array([ids[-1] for ids in rows])
            cached = forward.decode(tokens, last, int(last.max()) + 1, keep=None)
        except (TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
            raise _cannot_run(architecture, f"{type(error).__name__}: {error}") from error
        for slot, ids in enumerate(rows):
            with torch.no_grad():
                inputs = torch.from_numpy(ids).to(forward.device)[None]
                plain = architecture.model(
                    input_ids=inputs, attention_mask=torch.ones_like(inputs), use_cache=False
                ).logits[0, -1]
            gap, spread = _gap_and_spread(cached[slot], plain)
            if not gap <= _TOLERANCE * max(spread, 1e-3):
                raise _cannot_run(architecture, f"logits differ by {gap:.3g} (spread {spread:.3g})")
    bytes_per_token = forward.cache.nbytes_per_token()
    forward.cache.clear()
    return bytes_per_token


def _gap_and_spread(cached: torch.Tensor, plain: torch.Tensor) -> tuple[float, float]:
    """How far logits are apart at most, and their standard deviation.

    Tokens that the model rules out, with -inf or the least number there is, must be the same.
    """
    lowest = torch.finfo(plain.dtype).min / 2
    is_usual = plain >= lowest
    if not torch.equal(cached >= lowest, is_usual):
        return float("inf"), 0.0
    usual = plain[is_usual].float()
    return (cached[is_usual].float() - usual).abs().max().item(), usual.std().item()


def _cannot_run(architecture: Architecture, reason: str) -> UsageError:
    return UsageError(
        f"{type(architecture.model).__name__} does not give its own logits through the PyTorch "
        f"engine's KV cache ({reason}). Use a model with plain or sliding-window attention and "
        "position_ids, or another engine."
    )
