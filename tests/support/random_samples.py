"""Rows to train on, drawn by chance."""

import random
from collections.abc import Sequence

from corral.records import Sample


def random_samples(lengths: Sequence[int], *, vocabulary: int = 48, seed: int = 0) -> list[Sample]:
    """Samples with a two-token prompt and gaps (tool results) in the mask."""
    chance = random.Random(seed)
    samples: list[Sample] = []
    for member, length in enumerate(lengths):
        mask = tuple(int(place >= 2 and chance.random() < 0.7) for place in range(length))
        samples.append(
            Sample(
                ids=tuple(chance.randrange(vocabulary) for _ in range(length)),
                loss_mask=mask,
                logprobs=tuple(-1.0 - chance.random() if kept else 0.0 for kept in mask),
                advantage=chance.uniform(-1, 1),
                version=0,
                episode=(0, member),
            )
        )
    return samples
