"""Each request's random numbers are its own."""

import numpy as np

from corral.engines.torch_engine.randomness import uniforms


def test_a_draw_depends_on_seed_and_index_only() -> None:
    seeds = np.array([3, 2**63 - 1, 3, 2**64 - 1], np.uint64)
    draws = np.array([0, 5, 9, 1])
    together = uniforms(seeds, draws)
    for i in range(4):
        assert uniforms(seeds[i : i + 1], draws[i : i + 1])[0] == together[i]
    assert len(set(together.tolist())) == 4


def test_numbers_are_uniform_along_a_stream_and_across_seeds() -> None:
    count = 20_000
    for numbers in (
        uniforms(np.full(count, 1, np.uint64), np.arange(count)),
        uniforms(np.arange(count, dtype=np.uint64), np.zeros(count, np.int64)),
    ):
        assert numbers.min() >= 0
        assert numbers.max() < 1
        bins = np.bincount((numbers * 50).astype(int), minlength=50)
        assert ((bins - 400) ** 2 / 400).sum() < 49 + 5 * np.sqrt(98)
        assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.03
