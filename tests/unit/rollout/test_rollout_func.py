import math
import re
from typing import Any

import pytest
import torch

from corral.errors import EnvironmentFault, UsageError
from corral.records import Outcome, SpanKind, Task
from corral.rollout import PlayedGroup, samples
from corral.rollout.returned import TokenBounds
from corral.rollout.rollout_func import RolloutRules, groups_from, prompts_for
from support.toy_tokenizers import byte_level_tokenizer

TOKENIZER = byte_level_tokenizer()
END = TOKENIZER.eos_token_id
TASKS = [
    Task(
        index=index,
        prompt=({"role": "user", "content": text},),
        columns={"prompt": [{"role": "user", "content": text}], "level": index},
    )
    for index, text in enumerate(["one", "two"])
]
RULES = RolloutRules(
    tokenizer=TOKENIZER,
    end_ids=frozenset({END}),
    bounds=TokenBounds(vocabulary=len(TOKENIZER), max_context=12),
    version=7,
)


def returned(**changes: Any) -> dict[str, Any]:
    """Two completions for each of two tasks, with what is to be different."""
    good: dict[str, Any] = {
        "prompt_ids": [[40, 41], [40, 41], [42], [42]],
        "completion_ids": [[100, END], [101, 102], [103, 104, END], [105, END]],
        "logprobs": [[-0.1, -0.2], [-0.3, -0.4], [-0.5, -0.6, -0.7], [-0.8, -0.9]],
    }
    return {name: value for name, value in (good | changes).items() if value != "left out"}


def played(**changes: Any) -> list[PlayedGroup]:
    return groups_from(returned(**changes), TASKS, 2, RULES, seconds=1.5)


def episodes(**changes: Any) -> list[Any]:
    return [episode for group in played(**changes) for episode in group.group.episodes]


@pytest.mark.contract(31)
def test_each_completion_gets_a_prompt_of_its_own_with_the_members_of_a_group_together() -> None:
    prompts = prompts_for(TASKS, 2)
    assert [prompt[0]["content"] for prompt in prompts] == ["one", "one", "two", "two"]
    prompts[0][0]["content"] = prompts[1][0]["content"] = "changed"
    assert TASKS[0].prompt[0]["content"] == "one"


def test_a_prompt_that_is_text_in_the_data_stays_text() -> None:
    task = Task(index=0, prompt=({"role": "user", "content": "x"},), columns={"prompt": "x"})
    assert prompts_for([task], 2) == ["x", "x"]
    half = {name: value[:2] for name, value in returned().items()}
    (group,) = groups_from(half, [task], 2, RULES, seconds=0.0)
    assert group.is_text
    assert not played()[0].is_text


def test_the_ids_of_a_completion_are_trained_with_their_logprobs() -> None:
    groups = [group.group for group in played()]
    rows = samples(groups, [1.0, 2.0, 3.0, 4.0], stop_ids={END})
    assert [row.ids for row in rows] == [
        (40, 41, 100, END),
        (40, 41, 101, 102),
        (42, 103, 104, END),
        (42, 105, END),
    ]
    assert rows[2].loss_mask == (0, 1, 1, 1)
    assert rows[2].logprobs == (0.0, -0.5, -0.6, -0.7)
    assert [(row.advantage, row.version, row.episode) for row in rows] == [
        (1.0, 7, (0, 0)),
        (2.0, 7, (0, 1)),
        (3.0, 7, (1, 0)),
        (4.0, 7, (1, 1)),
    ]
    assert [row.is_truncated for row in rows] == [False, True, False, False]


def test_an_episode_tells_what_the_function_did() -> None:
    said = [*TOKENIZER.encode("hello"), END]
    first, second = episodes(completion_ids=[said, said[:-1], said, said], logprobs=None)[:2]
    assert first.messages == (*TASKS[0].prompt, {"role": "assistant", "content": "hello"})
    assert first.completion_start == 1
    assert (first.outcome, second.outcome) == (Outcome.FINISHED, Outcome.OUT_OF_TOKENS)
    assert (first.turns, first.seconds["total"]) == (1, 1.5)


@pytest.mark.contract(31)
@pytest.mark.report("P029", "P044")
def test_ids_that_others_wrote_are_read_and_not_trained() -> None:
    ids, mask = [[100, 110, 111, END]] * 4, [[1, 0, 0, 1]] * 4
    made = episodes(completion_ids=ids, env_mask=mask, logprobs=[[-0.1, 0.0, 0.0, -0.2]] * 4)[0]
    assert [(span.kind, span.ids) for span in made.transcript.spans] == [
        (SpanKind.PROMPT, (40, 41)),
        (SpanKind.SAMPLED, (100,)),
        (SpanKind.TOOL, (110, 111)),
        (SpanKind.SAMPLED, (END,)),
    ]
    assert made.turns == 2
    (row,) = made.transcript.rows()
    assert row.loss_mask == (0, 0, 1, 0, 0, 1)
    assert row.logprobs == (0.0, 0.0, -0.1, 0.0, 0.0, -0.2)


@pytest.mark.parametrize("mask", [torch.tensor([True, False]), (1, 0), [1, 0]])
def test_arrays_and_tuples_are_lists_too(mask: Any) -> None:
    ids = [torch.tensor([100, END])] * 4
    made = episodes(completion_ids=ids, logprobs=torch.zeros(4, 2), env_mask=[mask] * 4)[0]
    assert made.transcript.spans[1].ids == (100,)
    assert made.transcript.spans[1].logprobs == (0.0,)


@pytest.mark.parametrize(
    "logprobs",
    [None, [None] * 4, [[None] * n for n in (2, 2, 3, 2)], [[math.nan] * 2] * 2 + [None] * 2],
)
@pytest.mark.report("P024", "P052")
def test_an_unknown_logprob_is_not_a_number_and_the_token_is_trained(logprobs: Any) -> None:
    for made in episodes(logprobs=logprobs):
        (row,) = made.transcript.rows()
        assert sum(row.loss_mask) == len(made.transcript.spans[1].ids)
        trained = [p for p, m in zip(row.logprobs, row.loss_mask, strict=True) if m]
        assert all(map(math.isnan, trained))


@pytest.mark.contract(31)
def test_other_keys_become_columns_one_value_each_or_the_same_for_all() -> None:
    made = episodes(score=[1, 2, 3, 4], note="all", pair=(5, 6), level=["a", "b", "c", "d"])
    assert [episode.task.columns["score"] for episode in made] == [1, 2, 3, 4]
    assert {episode.task.columns["note"] for episode in made} == {"all"}
    assert {episode.task.columns["pair"] for episode in made} == {(5, 6)}
    assert [episode.task.columns["level"] for episode in made] == ["a", "b", "c", "d"]
    assert all("env_mask" not in episode.task.columns for episode in made)


@pytest.mark.parametrize("nothing", [None, []])
@pytest.mark.report("P024", "P034")
def test_a_completion_without_tokens_is_a_fault_of_its_own(nothing: Any) -> None:
    made = episodes(completion_ids=[[100, END], nothing, [103, 104, END], [105, END]])
    outcomes = [episode.outcome for episode in made]
    assert outcomes == [Outcome.FINISHED, Outcome.ENVIRONMENT_FAULT, *[Outcome.FINISHED] * 2]
    assert "completion_ids[1] is empty" in made[1].error
    assert made[1].messages == TASKS[0].prompt
    assert not made[1].transcript.sampled_count()


@pytest.mark.report("P021")
def test_one_completion_beyond_the_context_does_not_end_the_run() -> None:
    longest, too_long = [100] * 11, [100] * 12
    ids = [[100, END], [101, 102], longest, too_long]
    made = episodes(completion_ids=ids, logprobs=None)
    assert made[2].outcome is Outcome.OUT_OF_TOKENS
    assert made[3].outcome is Outcome.ENVIRONMENT_FAULT
    assert "13 tokens" in made[3].error
    assert "context is 12" in made[3].error


def test_a_run_in_which_nothing_can_be_used_ends() -> None:
    with pytest.raises(EnvironmentFault, match=r"All 4 completions are unusable.*\[0\] is empty"):
        played(completion_ids=[[]] * 4, logprobs=None)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no logprobs": ({"logprobs": "left out"}, "rollout_func must return keys ['logprobs'] in its"),
    "two keys missing": (
        {"prompt_ids": "left out", "completion_ids": "left out"},
        "rollout_func must return keys ['completion_ids', 'prompt_ids'] in its",
    ),
    "one prompt too few": ({"prompt_ids": [[40]] * 3}, "prompt_ids has 3 entries for 4 prompts"),
    "one completion a task": ({"completion_ids": [[9]] * 2}, "completion_ids has 2 entries for 4"),
    "too many logprobs": ({"logprobs": [[-1.0] * 2] * 5}, "logprobs has 5 entries for 4 prompts"),
    "too many masks": ({"env_mask": [[1, 1]] * 5}, "env_mask has 5 entries for 4 prompts"),
    "no prompts": ({"prompt_ids": None}, "prompt_ids is None"),
    "text": ({"completion_ids": "abcd"}, "completion_ids is 'abcd'"),
    "text for ids": ({"completion_ids": ["abcd"] * 4}, "completion_ids[0] is 'abcd'"),
    "numbers for lists": ({"prompt_ids": [1, 2, 3, 4]}, "prompt_ids[0] is 1"),
    "fractions": ({"prompt_ids": [[1.5]] * 4}, "prompt_ids[0] is [1.5]"),
    "an empty prompt": ({"prompt_ids": [[40], [40], [], [42]]}, "prompt_ids[2] is empty"),
    "an id too large": ({"prompt_ids": [[5000]] * 4}, "prompt_ids[0] has the token id 5000"),
    "an id below 0": ({"prompt_ids": [[-1]] * 4}, "prompt_ids[0] has the token id -1"),
    "logprobs shorter": (
        {"logprobs": [[-0.1, -0.2], [-0.3], [-0.5] * 3, [-0.8] * 2]},
        "logprobs[1] has 1 values for 2 completion ids",
    ),
    "nested logprobs": (
        {"logprobs": [[[-0.1], [-0.2]]] * 4},
        "logprobs[0] is [[-0.1], [-0.2]]: give a list of one number",
    ),
    "logprobs of nothing": (
        {"logprobs": [[-math.inf, -0.2]] * 4},
        "logprobs[0] has an infinite value",
    ),
    "mask shorter": ({"env_mask": [[1]] * 4}, "env_mask[0] has 1 values for 2 completion ids"),
    "mask of other numbers": ({"env_mask": [[1, 2]] * 4}, "env_mask[0] has the value 2"),
    "a short extra list": ({"score": [1, 2]}, "score has 2 entries for 4 prompts"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.contract(31)
@pytest.mark.report("P023")
def test_wrong_returns_are_refused_by_name(name: str) -> None:
    changes, message = WRONG[name]
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        played(**changes)
    assert isinstance(caught.value, UsageError)


@pytest.mark.parametrize("value", [None, [1], "text"])
def test_what_is_no_dict_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="return a dict with the keys 'completion_ids'"):
        groups_from(value, TASKS, 2, RULES, seconds=0.0)
