from dataclasses import replace
from typing import Any

import pytest

from corral.records import (
    Episode,
    Finish,
    Outcome,
    Sampled,
    SpanKind,
    Task,
    ToolCounts,
    Transcript,
)
from corral.training.episode_metrics import episode_metrics as metrics_of
from corral.training.episode_metrics import (
    prompt_and_sampled_tokens,
    token_counts,
)

END = 6


def episode_metrics(episodes: list[Episode]) -> dict[str, float]:
    return metrics_of(episodes, frozenset({END}))


def episode(*turns: int, outcome: Outcome = Outcome.FINISHED, **more: Any) -> Episode:
    """An episode with turns of so many tokens, three prompt tokens and two a tool result."""
    transcript = Transcript().append(SpanKind.PROMPT, [1, 2, 3])
    for number, length in enumerate(turns):
        if number:
            transcript = transcript.append(SpanKind.TOOL, [8, 9])
        sampled = Sampled(
            ids=(5,) * length, logprobs=(-1.0,) * length, finish=Finish.STOP, version=0
        )
        transcript = transcript.append_sampled(sampled)
    return Episode(
        task=Task(index=0, prompt=()),
        member=0,
        messages=(),
        transcript=transcript,
        outcome=outcome,
        turns=len(turns),
        **more,
    )


@pytest.mark.contract(28)
@pytest.mark.parametrize(
    ("outcome", "last", "is_clipped"),
    [
        (Outcome.OUT_OF_TOKENS, 5, True),  # cut in the middle of a turn
        (Outcome.OUT_OF_TOKENS, END, False),  # a result did not fit: the model had said its say
        (Outcome.OUT_OF_TURNS, END, False),
        (Outcome.FINISHED, END, False),
    ],
)
def test_only_the_last_token_says_whether_an_episode_is_clipped(
    outcome: Outcome, last: int, is_clipped: bool
) -> None:
    ended = Sampled(ids=(5, last), logprobs=(-1.0, -1.0), finish=Finish.STOP, version=0)
    one = episode(outcome=outcome)
    one = replace(one, transcript=one.transcript.append_sampled(ended), turns=1)
    metrics = episode_metrics([one])
    assert metrics["completions/clipped_ratio"] == float(is_clipped)
    assert metrics["completions/mean_terminated_length"] == (0.0 if is_clipped else 2.0)


@pytest.mark.contract(28)
def test_lengths_count_sampled_tokens_of_episodes_that_were_played() -> None:
    metrics = episode_metrics(
        [
            episode(4, 2),
            episode(10, outcome=Outcome.OUT_OF_TOKENS),
            episode(outcome=Outcome.ENVIRONMENT_FAULT),
        ]
    )
    assert metrics["completions/mean_length"] == 8
    assert metrics["completions/min_length"] == 6
    assert metrics["completions/max_length"] == 10
    assert metrics["completions/mean_terminated_length"] == 6
    assert metrics["completions/clipped_ratio"] == 0.5
    assert metrics["episodes/turns"] == 1.5
    assert metrics["outcome/environment_fault"] == pytest.approx(1 / 3)


def test_rewards_are_averaged_over_those_that_have_them() -> None:
    metrics = episode_metrics(
        [
            episode(1, rewards={"a": 1.0, "b": None}, reward=1.0),
            episode(1, rewards={"a": 3.0, "b": None}, reward=3.0),
            episode(1, rewards={"a": None, "b": None}),
            episode(1),
        ]
    )
    assert (metrics["reward"], metrics["rewards/a/mean"]) == (2.0, 2.0)
    assert metrics["reward_std"] == metrics["rewards/a/std"] == pytest.approx(2**0.5)
    assert "rewards/b/mean" not in metrics
    assert metrics["episodes/scored_share"] == 0.5


def test_one_reward_has_no_spread_and_none_has_no_mean() -> None:
    assert episode_metrics([episode(1, rewards={"a": 1.0}, reward=1.0)])["reward_std"] == 0.0
    assert "reward" not in episode_metrics([episode(1)])


@pytest.mark.contract(17)
def test_tool_use_is_counted_over_calls_and_episodes() -> None:
    metrics = episode_metrics(
        [
            episode(1, tools=ToolCounts(calls=3, failures=1, malformed=1)),
            episode(1, tools=ToolCounts(calls=1, failures=1)),
            episode(1),
        ]
    )
    assert metrics["tools/call_frequency"] == pytest.approx(4 / 3)
    assert metrics["tools/failure_frequency"] == 0.5
    assert metrics["tools/malformed_frequency"] == 0.25
    assert metrics["tools/valid_call_share"] == pytest.approx(1 / 3)
    assert episode_metrics([episode(1)])["tools/failure_frequency"] == 0.0


def test_what_environments_report_is_averaged_over_those_that_report_it() -> None:
    metrics = episode_metrics(
        [episode(1, metrics={"win": 1.0, "guesses": 3.0}), episode(1, metrics={"win": 0.0})]
    )
    assert metrics["environment/guesses"] == 3.0
    assert metrics["win_rate"] == metrics["environment/win"] == 0.5
    assert "win_rate" not in episode_metrics([episode(1)])


def test_tokens_are_counted_with_and_without_those_of_tools() -> None:
    played = [episode(4, 2), episode(1)]
    assert token_counts(played) == (7, 15)
    assert prompt_and_sampled_tokens(played) == 13
