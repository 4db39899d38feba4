"""What became of a generation's tokens, and when a run has none left to train."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corral.errors import EnvironmentFault, UsageError
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
from corral.training.counters import LATER_PATIENCE, PATIENCE, Counters, TokenWatch, count

STOP = 9


def said(*ids: int) -> Sampled:
    return Sampled(ids=ids, logprobs=(-1.0,) * len(ids), finish=Finish.STOP, version=0)


def episode(*ids: int, **changes: Any) -> Episode:
    transcript = Transcript().append(SpanKind.PROMPT, [1, 2])
    whole = Episode(
        task=Task(index=0, prompt=()),
        member=0,
        messages=(),
        transcript=transcript.append_sampled(said(*ids)) if ids else transcript,
        outcome=Outcome.FINISHED,
        turns=1 if ids else 0,
        reward=1.0,
    )
    return replace(whole, **changes)


def counted(*episodes: Episode, masks: bool = False, own: bool = False) -> Counters:
    return count(episodes, stop_ids=frozenset({STOP}), masks_truncated=masks, is_own_template=own)


CUT = episode(3, 4, 5, outcome=Outcome.OUT_OF_TOKENS)
FAULT = episode(outcome=Outcome.INFRASTRUCTURE_FAULT, reward=None)
UNSCORED = episode(3, STOP, reward=None)


def test_tokens_of_scored_episodes_are_trainable() -> None:
    metrics = counted(episode(3, STOP), CUT, FAULT, UNSCORED).as_metrics()
    assert metrics == {
        "tokens/trainable": 5.0,
        "episodes/dropped": 2.0,
        "episodes/forked": 0.0,
        "turns/fallback": 0.0,
        "tools/malformed": 0.0,
    }


def test_what_is_cut_off_is_trainable_unless_it_is_masked() -> None:
    between_turns = episode(3, STOP, outcome=Outcome.OUT_OF_TOKENS)
    assert counted(CUT, between_turns).trainable == 5
    assert counted(CUT, between_turns, masks=True).trainable == 2


@pytest.mark.report("P026")
def test_a_rewritten_history_is_a_fork_and_its_shared_tokens_count_once() -> None:
    forked = episode(3, STOP).transcript
    forked = forked.append(SpanKind.TOOL, [7], parent=1).append_sampled(said(4, STOP))
    forked = forked.append(SpanKind.TOOL, [8], parent=1).append_sampled(said(5, 6, STOP))
    counters = counted(episode(3, STOP, transcript=forked), episode(3, STOP))
    assert (counters.forked, counters.trainable) == (1, 9)


def test_turns_under_a_template_that_is_not_the_tokenizers_are_a_fallback() -> None:
    episodes = [episode(3, STOP), episode(3, STOP, turns=4)]
    assert counted(*episodes, own=True).fallback == 5
    assert counted(*episodes).fallback == 0


def test_malformed_calls_are_added_up() -> None:
    tools = ToolCounts(calls=3, failures=2, malformed=2)
    assert counted(episode(3, tools=tools), episode(3, tools=tools)).malformed == 4


@pytest.mark.parametrize(
    ("empty", "masks", "said_why"),
    [
        (CUT, True, "1 cut off and masked: raise max_completion_length"),
        (UNSCORED, False, "1 without a reward"),
        (FAULT, False, "No episode could be played in 3 generations in a row"),
        (episode(), False, "1 in which the model sampled nothing"),
    ],
)
@pytest.mark.report("P023")
def test_a_run_starves_when_nothing_can_be_trained_for_a_while(
    empty: Episode, masks: bool, said_why: str
) -> None:
    watch = TokenWatch()
    for _ in range(PATIENCE - 1):
        watch.saw(counted(empty, masks=masks))
        assert not watch.is_starved
    watch.saw(counted(empty, masks=masks))
    assert watch.is_starved
    assert said_why in str(watch.why(None))


def test_a_run_that_had_a_token_to_train_is_given_more_time() -> None:
    watch = TokenWatch()
    for episodes in [(FAULT,), (episode(3),)] + [(FAULT,)] * (LATER_PATIENCE - 1):
        watch.saw(counted(*episodes))
    assert not watch.is_starved
    watch.saw(counted(FAULT))
    assert watch.is_starved
    assert not watch.has_only_failed


def test_only_faults_are_a_fault_and_rows_are_named_with_the_first_cause_of_each() -> None:
    def fault(row: int, cause: str) -> Episode:
        task = Task(index=row, prompt=())
        return replace(FAULT, task=task, error=cause)

    watch = TokenWatch()
    watch.saw(counted(*(fault(row, f"{row} broke.") for row in (7, 7, 2, 3, 4, 5))))
    assert watch.has_only_failed
    error = watch.why(Path("run/checkpoint-3"))
    assert isinstance(error, EnvironmentFault)
    assert "saved in run/checkpoint-3" in str(error)
    named = "train_dataset[7]: 7 broke; train_dataset[2]: 2 broke; train_dataset[3]: 3 broke"
    assert f"The latest: {named}; and 2 more rows." in str(error)
    watch.saw(counted(fault(7, "broke"), UNSCORED))
    assert not watch.has_only_failed
    assert isinstance(watch.why(None), UsageError)


def test_episodes_without_a_reward_are_counted_and_their_rows_named_once() -> None:
    rows = (5, 5, 2, 9, 7, 5)
    unscored = [replace(UNSCORED, task=Task(index=row, prompt=())) for row in rows]
    told = counted(*unscored, episode(3)).shown_unscored()
    assert told == "6 of 7 episodes (train_dataset[2], train_dataset[5], train_dataset[7], ...)"
    assert counted(UNSCORED).shown_unscored() == "1 of 1 episodes (train_dataset[0])"
