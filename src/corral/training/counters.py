"""What became of the tokens a run sampled, and the end of a run that has none left to train.

A generation without a token to train makes no update, and the run goes on with the next rows.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from corral.errors import CorralError, EnvironmentFault, UsageError
from corral.records import Episode
from corral.rollout.samples import is_clipped

PATIENCE = 3
"""Generations in a row without a trainable token after which a run ends that never had one."""
LATER_PATIENCE = 10
"""The same for a run that had one: where a generation is one row, and a third of the rows cannot be
played, three in a row come soon, and ten do not."""
_SHOWN_ROWS = 3


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
    causes: Mapping[int, str] = field(default_factory=dict[int, str])
    """By the number of its row: why the first fault of the row is one."""
    unscored_rows: Sequence[int] = ()
    """The rows that have an episode without a reward."""

    @property
    def has_only_faults(self) -> bool:
        """Whether no episode could be played to its end."""
        return self.faults == self.episodes

    def shown_unscored(self) -> str:
        """How many episodes no reward function scored, and of which rows they are."""
        rows = [f"train_dataset[{row}]" for row in self.unscored_rows]
        listed = ", ".join([*rows[:_SHOWN_ROWS], "..."] if rows[_SHOWN_ROWS:] else rows)
        return f"{self.unscored} of {self.episodes} episodes ({listed})"

    def shown_causes(self) -> str:
        """Rows that could not be played, and why."""
        shown = [
            f"train_dataset[{row}]: {cause:.300}"
            for row, cause in list(self.causes.items())[:_SHOWN_ROWS]
        ]
        more = len(self.causes) - len(shown)
        return "; ".join([*shown, f"and {more} more rows"] if more else shown)

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
    causes: dict[int, str] = {}
    for episode in episodes:
        if episode.outcome.is_fault():
            causes.setdefault(episode.task.index, str(episode.error).rstrip("."))
    return Counters(
        episodes=len(episodes),
        faults=len(episodes) - len(played),
        unscored=len(played) - len(scored),
        masked=len(scored) - len(kept),
        forked=sum(len(episode.transcript.leaves()) > 1 for episode in episodes),
        fallback=sum(episode.turns for episode in episodes) if is_own_template else 0,
        malformed=sum(episode.tools.malformed for episode in episodes),
        trainable=sum(episode.transcript.sampled_count() for episode in kept),
        causes=causes,
        unscored_rows=sorted({e.task.index for e in played if e.reward is None}),
    )


class TokenWatch:
    """Ends a run in which nothing is left to train: it would go on without learning anything."""

    def __init__(self) -> None:
        self._empty: list[Counters] = []
        self.has_trained = False
        """Whether there ever was something; a run that goes on from a checkpoint says so."""

    def saw(self, counters: Counters) -> None:
        """Take note of a generation."""
        self._empty = [] if counters.trainable else [*self._empty, counters]
        self.has_trained = self.has_trained or counters.trainable > 0

    @property
    def empty_in_a_row(self) -> int:
        """How many generations up to the latest had nothing."""
        return len(self._empty)

    @property
    def patience(self) -> int:
        """After how many of them the run ends."""
        return LATER_PATIENCE if self.has_trained else PATIENCE

    @property
    def is_starved(self) -> bool:
        """Whether it is time to stop."""
        return self.empty_in_a_row >= self.patience

    @property
    def has_only_failed(self) -> bool:
        """Whether no episode until now could be played: to reach the last step is no success."""
        failed = [each.has_only_faults for each in self._empty]
        return not self.has_trained and bool(failed) and all(failed)

    def why(self, saved: Path | None) -> CorralError:
        """What the latest generation lacked, and what to change.

        Args:
            saved: The newest checkpoint.
        """
        last, number = self._empty[-1], self.empty_in_a_row
        if last.has_only_faults:
            return EnvironmentFault(
                f"No episode could be played in {number} generations in a row, so the run stops. "
                f"{where_saved(saved)} The latest: {last.shown_causes()}."
            )
        parts = [
            f"{count} {what}"
            for count, what in (
                (last.faults, f"faults ({last.shown_causes()})"),
                (last.unscored, "without a reward: every reward function returned None for them"),
                (
                    last.masked,
                    "cut off and masked: raise max_completion_length, or set "
                    "mask_truncated_completions=False",
                ),
            )
            if count
        ]
        rest = last.episodes - last.faults - last.unscored - last.masked
        parts += [f"{rest} in which the model sampled nothing"] if rest else []
        return UsageError(
            f"{number} generations in a row had no token to train, so the run stops. "
            f"{where_saved(saved)} Of the latest {last.episodes} episodes: {'; '.join(parts)}."
        )


def where_saved(checkpoint: Path | None) -> str:
    """A sentence for errors that end a run."""
    if checkpoint is None:
        return "Nothing is saved."
    return f"What was trained until now is saved in {checkpoint}."
