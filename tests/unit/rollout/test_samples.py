import pytest

from corral.errors import UsageError
from corral.records import (
    Episode,
    Finish,
    Group,
    Outcome,
    Sampled,
    SpanKind,
    Task,
    Transcript,
)
from corral.rollout.samples import completion_ids, is_clipped, reward_matrix, samples

TASK = Task(index=4, prompt=({"role": "user", "content": "Play."},))
STOP = 2


def turn(*ids: int, version: int = 0) -> Sampled:
    return Sampled(ids=ids, logprobs=(-0.5,) * len(ids), finish=Finish.STOP, version=version)


def episode(*spans: Sampled | tuple[int, ...], outcome=Outcome.FINISHED, **more) -> Episode:
    transcript = Transcript().append(SpanKind.PROMPT, [7, 8])
    for span in spans:
        if isinstance(span, Sampled):
            transcript = transcript.append_sampled(span)
        else:
            transcript = transcript.append(SpanKind.TOOL, span)
    return Episode(
        task=TASK,
        member=more.pop("member", 0),
        messages=TASK.prompt,
        transcript=transcript,
        outcome=outcome,
        turns=1,
        **more,
    )


def made(*episodes: Episode, advantages=None, **options):
    group = Group(task=TASK, episodes=episodes)
    values = [1.5] * len(episodes) if advantages is None else advantages
    return samples([group], values, stop_ids={STOP}, **options)


@pytest.mark.contract(21)
@pytest.mark.report("P044")
def test_a_sample_trains_the_sampled_tokens_only() -> None:
    (sample,) = made(episode(turn(10, STOP, version=3), (20, 21), turn(11, STOP, version=4)))
    assert sample.ids == (7, 8, 10, STOP, 20, 21, 11, STOP)
    assert sample.loss_mask == (0, 0, 1, 1, 0, 0, 1, 1)
    assert sample.logprobs == (0, 0, -0.5, -0.5, 0, 0, -0.5, -0.5)
    assert (sample.advantage, sample.version, sample.episode) == (1.5, 3, (0, 0))


def test_tokens_after_the_last_sampled_one_are_left_out() -> None:
    ended = episode(turn(10, STOP), (20, 21), outcome=Outcome.STOPPED_BY_ENVIRONMENT)
    (sample,) = made(ended)
    assert sample.ids == (7, 8, 10, STOP)
    assert len(sample.ids) == len(sample.loss_mask) == len(sample.logprobs)


@pytest.mark.parametrize("outcome", [Outcome.ENVIRONMENT_FAULT, Outcome.INFRASTRUCTURE_FAULT])
def test_a_fault_makes_no_sample(outcome: Outcome) -> None:
    rows = made(
        episode(turn(10, STOP), outcome=outcome),
        episode(turn(11, STOP), member=1),
        advantages=[9.0, -1.0],
    )
    assert [(row.episode, row.advantage) for row in rows] == [((0, 1), -1.0)]


@pytest.mark.report("P034")
def test_an_episode_without_sampled_tokens_makes_no_sample() -> None:
    assert made(episode(outcome=Outcome.TIMED_OUT)) == []


def test_zero_advantage_keeps_its_tokens() -> None:
    (sample,) = made(episode(turn(10, STOP)), advantages=[0.0])
    assert sample.trained_tokens() == 2


@pytest.mark.parametrize(
    ("outcome", "spans", "clipped"),
    [
        (Outcome.FINISHED, [turn(10, STOP)], False),
        (Outcome.OUT_OF_TURNS, [turn(10, STOP)], False),
        (Outcome.OUT_OF_TOKENS, [turn(10, STOP)], False),  # the tool result did not fit
        (Outcome.OUT_OF_TOKENS, [turn(10, 11)], True),
        (Outcome.OUT_OF_TOKENS, [turn(10, STOP), (20,)], True),  # the result filled the budget
        (Outcome.STOPPED_BY_ENVIRONMENT, [turn(10, STOP), (20,)], False),
        (Outcome.TIMED_OUT, [turn(10, STOP), (20,)], True),
    ],
)
@pytest.mark.contract(28)
@pytest.mark.report("P039")
def test_only_a_model_cut_off_in_the_middle_is_clipped(
    outcome: Outcome, spans: list, clipped: bool
) -> None:
    one = episode(*spans, outcome=outcome)
    assert is_clipped(one, frozenset({STOP})) is clipped
    (sample,) = made(one, mask_truncated=True)
    assert sample.is_truncated is clipped
    assert (sample.trained_tokens() == 0) is clipped


@pytest.mark.report("P026", "P041")
def test_every_branch_becomes_a_row_and_shared_turns_are_trained_once() -> None:
    transcript = (
        Transcript()
        .append(SpanKind.PROMPT, [7])
        .append_sampled(turn(10))
        .append_sampled(turn(11), parent=1)
        .append_sampled(turn(12), parent=1)
        .append_sampled(turn(13), parent=1)
    )
    base = episode(turn(1))
    forked = Episode(
        task=TASK,
        member=0,
        messages=base.messages,
        transcript=transcript,
        outcome=Outcome.FINISHED,
        turns=3,
    )
    rows = made(forked)
    assert [row.loss_mask for row in rows] == [(0, 1, 1), (0, 0, 1), (0, 0, 1)]
    assert {row.advantage for row in rows} == {1.5}


@pytest.mark.report("P027")
def test_every_turn_of_two_conversations_follows_its_own_prompt() -> None:
    """Two agents of one episode, three turns each, recorded in turns."""
    transcript, asked = Transcript(), []
    last = dict.fromkeys((100, 200), -1)
    for number in range(3):
        for agent in last:
            ids = [agent + number]
            transcript = transcript.append(SpanKind.PROMPT, ids, parent=last[agent])
            asked.append(transcript.ids())
            transcript = transcript.append_sampled(turn(number, STOP))
            last[agent] = len(transcript.spans) - 1
    sampled = [i for i, span in enumerate(transcript.spans) if span.kind is SpanKind.SAMPLED]
    assert [transcript.ids(transcript.spans[i].parent) for i in sampled] == asked
    assert [row.ids for row in transcript.rows()] == [
        (100, 0, STOP, 101, 1, STOP, 102, 2, STOP),
        (200, 0, STOP, 201, 1, STOP, 202, 2, STOP),
    ]
    assert [row.loss_mask for row in transcript.rows()] == [(0, 1, 1) * 3] * 2


@pytest.mark.report("P023")
def test_a_turn_without_a_logprob_for_each_id_is_no_turn() -> None:
    with pytest.raises(ValueError, match="2 ids but 0 logprobs"):
        Sampled(ids=(10, STOP), logprobs=(), finish=Finish.STOP, version=0)


def test_one_advantage_an_episode_is_required() -> None:
    with pytest.raises(UsageError, match="2 advantages for 1 episodes"):
        made(episode(turn(10)), advantages=[1.0, 2.0])


@pytest.mark.contract(32)
def test_completion_ids_hold_sampled_and_tool_tokens() -> None:
    assert completion_ids(episode(turn(10, STOP), (20,), turn(11))) == [10, STOP, 20, 11]


def test_the_reward_matrix_has_a_row_of_none_for_a_fault() -> None:
    group = Group(
        task=TASK,
        episodes=(
            episode(rewards={"a": 1.0, "b": None}),
            episode(rewards={"a": 5.0}, outcome=Outcome.ENVIRONMENT_FAULT),
        ),
    )
    other = Group(task=TASK, episodes=(episode(rewards={"b": 2.0}),))
    rewards, numbers = reward_matrix([group, other], ["a", "b"])
    assert rewards == [[1.0, None], [None, None], [None, 2.0]]
    assert numbers == [0, 0, 1]


def test_groups_of_the_same_task_are_told_apart() -> None:
    group = Group(task=TASK, episodes=(episode(turn(10, STOP)), episode(turn(11, STOP), member=1)))
    rows = samples([group, group], [1.0] * 4, stop_ids={STOP})
    assert [row.episode for row in rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
