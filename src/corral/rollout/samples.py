"""From scored groups to training rows."""

from collections.abc import Iterable, Sequence

from corral.errors import UsageError
from corral.records import Episode, Group, Outcome, Sample, SpanKind, TokenRow


def samples(
    groups: Sequence[Group],
    advantages: Sequence[float],
    *,
    stop_ids: Iterable[int],
    mask_truncated: bool = False,
) -> list[Sample]:
    """The training rows of all episodes, each with the advantage of its episode.

    A fault produces no row, and neither does an episode in which nothing was sampled. An episode
    with advantage 0 keeps its rows: its tokens count in the totals a loss is divided by. Tokens
    after the last sampled one are left out, as nothing that is trained can see them.

    Args:
        advantages: One for each episode of ``groups``, in order, faults included (their value is
            not looked at).
        stop_ids: What ends a turn; see :func:`is_clipped`.
        mask_truncated: Train no token of a clipped episode. Its rows stay, with an empty mask.
    """
    # Numbered by group, not by task: a small data set may give the same task to several groups.
    episodes = [
        (number, episode) for number, group in enumerate(groups) for episode in group.episodes
    ]
    if len(advantages) != len(episodes):
        raise UsageError(
            f"{len(advantages)} advantages for {len(episodes)} episodes: give one for each episode "
            "of each group, in order, faults included."
        )
    ends = frozenset(stop_ids)
    return [
        _sample(row, episode, number, advantage, is_clipped(episode, ends), mask_truncated)
        for (number, episode), advantage in zip(episodes, advantages, strict=True)
        if not episode.outcome.is_fault()
        for row in episode.transcript.rows()
        if any(row.loss_mask)
    ]


def is_clipped(episode: Episode, stop_ids: frozenset[int]) -> bool:
    """Whether the model was cut off in the middle: what ``clipped_ratio`` counts.

    An episode ended by a limit *between* turns (out of turns, or a tool result that does not fit)
    ends in a stop id. The model said all it wanted in its last turn, so it is not clipped.
    """
    if episode.outcome is Outcome.TIMED_OUT:
        return True
    ids = episode.transcript.ids()
    return episode.outcome is Outcome.OUT_OF_TOKENS and (not ids or ids[-1] not in stop_ids)


def completion_ids(episode: Episode) -> list[int]:
    """Every token after the prompt on the conversation's last line, sampled and tool alike."""
    spans = episode.transcript.spans
    prompt = len(spans[0].ids) if spans and spans[0].kind is SpanKind.PROMPT else 0
    return list(episode.transcript.ids()[prompt:])


def reward_matrix(
    groups: Sequence[Group], names: Sequence[str]
) -> tuple[list[list[float | None]], list[int]]:
    """Rewards (episodes × names) and the group number of each episode, faults as rows of None.

    Rows are in the order :func:`samples` expects its advantages in.
    """
    rewards: list[list[float | None]] = []
    numbers: list[int] = []
    for number, group in enumerate(groups):
        for episode in group.episodes:
            is_fault = episode.outcome.is_fault()
            rewards.append([None if is_fault else episode.rewards.get(name) for name in names])
            numbers.append(number)
    return rewards, numbers


def _sample(
    row: TokenRow,
    episode: Episode,
    group: int,
    advantage: float,
    is_cut: bool,
    mask_truncated: bool,
) -> Sample:
    end = len(row.loss_mask) - row.loss_mask[::-1].index(1)
    is_masked = is_cut and mask_truncated
    trained = zip(row.versions, row.loss_mask, strict=True)
    return Sample(
        ids=row.ids[:end],
        loss_mask=(0,) * end if is_masked else row.loss_mask[:end],
        logprobs=(0.0,) * end if is_masked else row.logprobs[:end],
        advantage=float(advantage),
        version=min(version for version, is_trained in trained if is_trained),
        episode=(group, episode.member),
        is_truncated=is_cut,
        images=tuple(image for image in row.images if image.stop <= end),
    )
