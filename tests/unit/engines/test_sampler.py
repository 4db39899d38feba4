"""Draws follow the distribution, and the logprob is that of the distribution drawn from."""

from typing import Any

import numpy as np
import pytest
import torch

from corral.engines.torch_engine.randomness import uniforms
from corral.engines.torch_engine.sampler import RowSampling, draw, sample_rows


def rows(count: int, **changes: Any) -> RowSampling:
    defaults = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0}
    values = defaults | {"repetition_penalty": 1.0} | changes
    return RowSampling(**{name: np.full(count, value) for name, value in values.items()})


def drawn(logits: torch.Tensor, count: int, **changes: Any) -> tuple[np.ndarray, np.ndarray]:
    numbers = uniforms(np.full(count, 7, np.uint64), np.arange(count))
    tokens, logprobs = sample_rows(logits.expand(count, -1), rows(count, **changes), numbers, None)
    return tokens.numpy(), logprobs.numpy()


@pytest.mark.parametrize("vocabulary", [5, 128, 300])
def test_draws_follow_the_softmax(vocabulary: int) -> None:
    logits = torch.randn(vocabulary, generator=torch.Generator().manual_seed(1)) * 1.5
    count = 40_000
    tokens, _ = drawn(logits, count, temperature=0.8)
    expected = (logits.double() / 0.8).softmax(-1).numpy() * count
    observed = np.bincount(tokens, minlength=vocabulary)
    statistic = ((observed - expected) ** 2 / expected).sum()
    freedom = vocabulary - 1
    # Five standard deviations above the mean of a chi-square of that many degrees of freedom.
    assert statistic < freedom + 5 * np.sqrt(2 * freedom)


def test_logprobs_are_of_the_tempered_distribution() -> None:
    logits = torch.randn(300, generator=torch.Generator().manual_seed(1))
    tokens, logprobs = drawn(logits, 50, temperature=0.5)
    expected = (logits / 0.5).log_softmax(-1)[torch.from_numpy(tokens)]
    np.testing.assert_allclose(logprobs, expected, atol=1e-6)


@pytest.mark.parametrize("number", [0.0, 0.25, 0.5, 1 - 2.0**-48])
def test_a_token_of_probability_zero_is_never_drawn(number: float) -> None:
    scores = torch.full((1, 400), -torch.inf)
    scores[0, [3, 200]] = 0.0
    tokens, logprobs = draw(scores, torch.tensor([number], dtype=torch.float64))
    assert tokens.item() == (3 if number < 0.5 else 200)
    assert logprobs.item() == pytest.approx(np.log(0.5))


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        ({"top_k": 2}, [0, 1]),
        ({"top_p": 0.6}, [0, 1]),
        ({"top_p": 0.5}, [0]),
        ({"top_p": 0.001}, [0]),
        ({"min_p": 0.5}, [0, 1]),
        ({"top_k": 3, "top_p": 0.95}, [0, 1, 2]),
        ({"top_k": 100}, [0, 1, 2, 3]),
    ],
)
def test_filters_keep_the_likely_tokens_and_rescale(
    filters: dict[str, Any], kept: list[int]
) -> None:
    probabilities = torch.tensor([0.5, 0.3, 0.15, 0.05])
    tokens, logprobs = drawn(probabilities.log(), 2000, **filters)
    assert sorted(set(tokens.tolist())) == kept
    expected = (probabilities / probabilities[kept].sum()).log()[torch.from_numpy(tokens)]
    np.testing.assert_allclose(logprobs, expected, atol=1e-6)


def test_filters_of_one_row_leave_the_others_alone() -> None:
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().expand(400, -1)
    how = rows(400)
    how.top_k[::2] = 1
    numbers = uniforms(np.full(400, 7, np.uint64), np.arange(400))
    tokens, _ = sample_rows(logits, how, numbers, None)
    assert set(tokens[::2].tolist()) == {0}
    assert set(tokens[1::2].tolist()) == {0, 1, 2, 3}


def test_greedy_rows_take_the_best_and_report_the_unmodified_logprob() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0]]).expand(2, -1)
    how = rows(2, temperature=0.0, top_k=1)
    how.repetition_penalty[1] = 10.0
    history = [torch.tensor([1]), torch.tensor([1])]
    tokens, logprobs = sample_rows(logits, how, np.zeros(2), history)
    assert tokens.tolist() == [1, 2]
    expected = logits[0].log_softmax(-1)[[1, 2]]
    torch.testing.assert_close(logprobs, expected)


def test_greedy_and_sampled_rows_share_a_batch() -> None:
    logits = torch.tensor([[0.0, 2.0, 0.0]]).expand(300, -1)
    how = rows(300)
    how.temperature[:100] = 0.0
    numbers = uniforms(np.full(300, 7, np.uint64), np.arange(300))
    tokens, _ = sample_rows(logits, how, numbers, None)
    assert set(tokens[:100].tolist()) == {1}
    assert set(tokens[100:].tolist()) == {0, 1, 2}


def test_repetition_penalty_divides_positive_and_multiplies_negative_logits() -> None:
    logits = torch.tensor([[2.0, -2.0, 0.5]])
    how = rows(1, repetition_penalty=2.0)
    tokens, logprobs = sample_rows(logits, how, np.array([0.3]), [torch.tensor([0, 1, 0])])
    expected = torch.tensor([1.0, -4.0, 0.5]).log_softmax(-1)[tokens]
    torch.testing.assert_close(logprobs, expected)
    assert logits.tolist() == [[2.0, -2.0, 0.5]]
