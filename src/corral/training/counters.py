"""What became of the tokens a run sampled, and the end of a run that has none left to train.

Five numbers stand beside every generation, 0 included:

``tokens/trainable``
    Sampled tokens that the loss may look at: those of scored episodes, without the ones that
    ``mask_truncated_completions`` takes out. Equal rewards do not count against them.
``episodes/dropped``
    Episodes that teach nothing: faults, and those that no reward function scored.
``episodes/forked``
    Episodes of more than one training row: their history was rewritten instead of extended. Played
    by Corral there are none; a ``rollout_func`` may return some.
``turns/fallback``
    Turns of conversations that Corral's own template wrote, because the tokenizer has none or one
    without a place for tools.
``tools/malformed``
    Tool calls that could not be read, and were answered with what is wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from corral.errors import UsageError
from corral.records import Episode
from corral.rollout.samples import is_clipped

PATIENCE = 3
"""Generations in a row without a trainable token after which a run ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """The numbers of one generation, over all processes."""

    episodes: int
    faults: int
    unscored: int
    """Played to the end, and without a reward."""
    masked: int
    """Scored, cut off, and therefore not trained."""
    forked: int
    fallback: int
    malformed: int
    trainable: int

    def as_metrics(self) -> dict[str, float]:
        """Under the names they are logged by."""
        return {
            "tokens/trainable": float(self.trainable),
            "episodes/dropped": float(self.faults + self.unscored),
            "episodes/forked": float(self.forked),
            "turns/fallback": float(self.fallback),
            "tools/malformed": float(self.malformed),
        }


def count(
    episodes: Sequence[Episode],
    *,
    stop_ids: frozenset[int],
    masks_truncated: bool,
    is_own_template: bool,
) -> Counters:
    """Count what the episodes of one generation hold.

    Args:
        masks_truncated: Whether episodes that were cut off are left out of the loss.
        is_own_template: Whether Corral's template stands in for the tokenizer's.
    """
    played = [episode for episode in episodes if not episode.outcome.is_fault()]
    scored = [episode for episode in played if episode.reward is not None]
    kept = [
        episode for episode in scored if not (masks_truncated and is_clipped(episode, stop_ids))
    ]
    return Counters(
        episodes=len(episodes),
        faults=len(episodes) - len(played),
        unscored=len(played) - len(scored),
        masked=len(scored) - len(kept),
        forked=sum(len(episode.transcript.leaves()) > 1 for episode in episodes),
        fallback=sum(episode.turns for episode in episodes) if is_own_template else 0,
        malformed=sum(episode.tools.malformed for episode in episodes),
        trainable=sum(episode.transcript.sampled_count() for episode in kept),
    )


class TokenWatch:
    """Ends a run in which nothing is left to train: it would go on without learning anything."""

    def __init__(self) -> None:
        self._empty: list[Counters] = []

    def saw(self, counters: Counters) -> None:
        """Take note of a generation."""
        self._empty = [] if counters.trainable else [*self._empty, counters]

    @property
    def is_starved(self) -> bool:
        """Whether it is time to stop."""
        return len(self._empty) >= PATIENCE

    def why(self) -> UsageError:
        """What the latest generation lacked, and what to change."""
        last = self._empty[-1]
        parts = [
            f"{number} {what}"
            for number, what in (
                (last.faults, "faults: see their `error` in the run's episodes"),
                (last.unscored, "without a reward: every reward function returned None for them"),
                (
                    last.masked,
                    "cut off and masked: raise max_completion_length, or set "
                    "mask_truncated_completions=False",
                ),
            )
            if number
        ]
        rest = last.episodes - last.faults - last.unscored - last.masked
        parts += [f"{rest} in which the model sampled nothing"] if rest else []
        return UsageError(
            f"{len(self._empty)} generations in a row had no token to train, so the run stops; its "
            f"last step is saved. Of the latest {last.episodes} episodes: {'; '.join(parts)}."
        )
