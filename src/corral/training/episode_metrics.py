"""Numbers about a batch of episodes, under the names the field's dashboards already plot."""

from collections.abc import Iterable, Sequence
from statistics import fmean, stdev

from corral.records import Episode, Outcome, SpanKind
from corral.rollout.samples import is_clipped


def episode_metrics(episodes: Sequence[Episode], stop_ids: frozenset[int]) -> dict[str, float]:
    """Lengths, tool use, rewards and outcomes of a batch.

    Means of rewards are over scored episodes only; an absent key means there was nothing to
    average, which is not the same as 0.

    Args:
        stop_ids: What ends a turn; see `corral.rollout.samples.is_clipped`.
    """
    return {
        **_lengths(episodes, stop_ids),
        **_tools(episodes),
        **_rewards(episodes),
        **_outcomes(episodes),
        **_environment(episodes),
    }


def _lengths(episodes: Sequence[Episode], stop_ids: frozenset[int]) -> dict[str, float]:
    played = [episode for episode in episodes if episode.turns]
    if not played:
        return {}
    lengths = [episode.transcript.sampled_count() for episode in played]
    ended = [
        length
        for length, episode in zip(lengths, played, strict=True)
        if not is_clipped(episode, stop_ids)
    ]
    return {
        "completions/mean_length": fmean(lengths),
        "completions/min_length": float(min(lengths)),
        "completions/max_length": float(max(lengths)),
        "completions/mean_terminated_length": fmean(ended) if ended else 0.0,
        "completions/min_terminated_length": float(min(ended, default=0)),
        "completions/max_terminated_length": float(max(ended, default=0)),
        "completions/clipped_ratio": 1 - len(ended) / len(played),
        "episodes/turns": fmean(episode.turns for episode in played),
    }


def _tools(episodes: Sequence[Episode]) -> dict[str, float]:
    calls = sum(episode.tools.calls for episode in episodes)
    failures = sum(episode.tools.failures for episode in episodes)
    malformed = sum(episode.tools.malformed for episode in episodes)
    with_valid = sum(episode.tools.has_success() for episode in episodes)
    return {
        "tools/call_frequency": calls / len(episodes),
        "tools/failure_frequency": failures / calls if calls else 0.0,
        "tools/malformed_frequency": malformed / calls if calls else 0.0,
        "tools/valid_call_share": with_valid / len(episodes),
    }


def _rewards(episodes: Sequence[Episode]) -> dict[str, float]:
    metrics: dict[str, float] = {}
    names = sorted({name for episode in episodes for name in episode.rewards})
    for name in names:
        values = [value for e in episodes if (value := e.rewards.get(name)) is not None]
        metrics |= _mean_and_std(f"rewards/{name}/", values)
    total = [episode.reward for episode in episodes if episode.reward is not None]
    if total:
        metrics["reward"] = fmean(total)
        metrics["reward_std"] = stdev(total) if len(total) > 1 else 0.0
    metrics["episodes/scored_share"] = len(total) / len(episodes)
    return metrics


def _mean_and_std(prefix: str, values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    return {
        f"{prefix}mean": fmean(values),
        f"{prefix}std": stdev(values) if len(values) > 1 else 0.0,
    }


def _outcomes(episodes: Sequence[Episode]) -> dict[str, float]:
    share = dict.fromkeys(Outcome, 0)
    for episode in episodes:
        share[episode.outcome] += 1
    return {f"outcome/{outcome}": count / len(episodes) for outcome, count in share.items()}


def _environment(episodes: Sequence[Episode]) -> dict[str, float]:
    names = sorted({name for episode in episodes for name in episode.metrics})
    means = {
        f"environment/{name}": fmean(_present(episode.metrics.get(name) for episode in episodes))
        for name in names
    }
    if "environment/win" in means:
        means["win_rate"] = means["environment/win"]
    return means


def _present(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def token_counts(episodes: Sequence[Episode]) -> tuple[int, int]:
    """(tokens the model sampled, all tokens of prompt, model and tools)."""
    sampled = sum(episode.transcript.sampled_count() for episode in episodes)
    every = sum(len(span.ids) for episode in episodes for span in episode.transcript.spans)
    return sampled, every


def prompt_and_sampled_tokens(episodes: Sequence[Episode]) -> int:
    """What the field's ``num_tokens`` counts: prompt and model tokens, not tool tokens."""
    counted = (SpanKind.PROMPT, SpanKind.SAMPLED)
    return sum(
        len(span.ids)
        for episode in episodes
        for span in episode.transcript.spans
        if span.kind in counted
    )
