"""Builders for small batches."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from corral.algorithms import TokenBatch


@pytest.fixture
def batch_of() -> Callable[..., TokenBatch]:
    """Build a batch from nested lists [rows][places], in float64 unless told otherwise."""

    def build(
        logprobs: list[list[float]], *, advantages: list[float], dtype=torch.float64, **tensors
    ) -> TokenBatch:
        def flatten(values: list[list[float]]) -> Tensor:
            return torch.tensor(values, dtype=dtype).flatten()

        rows, width = len(logprobs), len(logprobs[0])
        mask = flatten(tensors.pop("mask", [[1.0] * width] * rows)).bool()
        flat = {name: flatten(values) for name, values in tensors.items()}
        return TokenBatch(
            logprobs=flatten(logprobs).requires_grad_(),
            mask=mask,
            row=torch.arange(rows).repeat_interleave(width),
            advantages=torch.tensor(advantages, dtype=dtype),
            row_count=rows,
            **flat,
        )

    return build


@pytest.fixture
def random_batch() -> Callable[..., TokenBatch]:
    """Build a batch with rows of the given lengths, with everything a loss can ask for."""

    def build(lengths: Sequence[int], *, seed: int = 0) -> TokenBatch:
        generator = torch.Generator().manual_seed(seed)
        count = sum(lengths)

        def draw(scale: float = 0.3, size: int = count) -> Tensor:
            return scale * torch.randn(size, generator=generator, dtype=torch.float64)

        logprobs = draw() - 2.0
        return TokenBatch(
            logprobs=logprobs.clone().requires_grad_(),
            mask=torch.ones(count, dtype=torch.bool),
            row=torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths)),
            advantages=draw(1.0, len(lengths)),
            old_logprobs=logprobs + draw(),
            sampling_logprobs=logprobs + draw(),
            ref_logprobs=logprobs + draw(),
            entropies=(draw(1.0).abs()).requires_grad_(),
            row_count=len(lengths),
        )

    return build
