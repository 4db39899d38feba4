"""What one round of play leaves for learning, and how it is cut into optimiser steps."""

from collections.abc import Sequence
from dataclasses import dataclass

from corral.algorithms import Advantages, trainable
from corral.chat import ChatFormat
from corral.records import Episode, Sample
from corral.rollout import Scored, samples
from corral.rollout.seeds import shuffled
from corral.training.batching import BatchPlan
from corral.training.grpo_config import GRPOConfig
from corral.training.vision import without_mismatches


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """This process's groups of one generation, scored and compared."""

    scored: Scored
    advantages: Advantages
    """One entry an episode, in the order of the groups."""
    seconds: float
    """Wall time of playing and scoring."""

    def episodes(self) -> list[Episode]:
        """All episodes in order, faults included."""
        return [episode for group in self.scored.groups for episode in group.episodes]

    def rows(self, stop_ids: frozenset[int], drop_truncated: bool) -> list[Sample]:
        """The training rows that have something to train."""
        every = samples(self.scored.groups, self.advantages.values, stop_ids=stop_ids)
        return trainable(every, drop_truncated=drop_truncated)


def training_rows(generation: Generation, chat: ChatFormat, args: GRPOConfig) -> list[Sample]:
    """The rows of a generation as the configuration wants them, images beside their tokens."""
    rows = generation.rows(chat.stop_ids, args.mask_truncated_completions)
    return rows if chat.images is None else without_mismatches(rows, chat.images.token_id)


def slices_of(rows: Sequence[Sample], plan: BatchPlan, seed: int, step: int) -> list[list[Sample]]:
    """The rows of each optimiser step that one generation feeds, whole episodes together.

    Args:
        step: Optimiser steps made before; with ``seed`` it fixes the order.
    """
    slices: list[list[Sample]] = []
    for number in range(plan.passes):
        episodes = list(dict.fromkeys(row.episode for row in rows))
        if plan.slices > 1:
            episodes = shuffled(episodes, seed, "slices", step, number)
        for place in range(plan.slices):
            mine = set(episodes[place :: plan.slices])
            slices.append([row for row in rows if row.episode in mine])
    return slices
