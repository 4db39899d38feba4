import asyncio
import time
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from corral.errors import UsageError
from corral.records import Episode, Finish, Group, Outcome, Sampled, SpanKind, Task, Transcript
from corral.rollout import reward_functions, score
from corral.rollout.played import PlayedGroup


def episode(member: int = 0, **changes: Any) -> Episode:
    task = Task(
        index=0,
        prompt=({"role": "user", "content": "Play."},),
        columns={"prompt": "Play.", "secret": 10 + member},
    )
    sampled = Sampled(ids=(5, 2), logprobs=(-1.0, -1.0), finish=Finish.STOP, version=0)
    fields: dict[str, Any] = {
        "task": task,
        "member": member,
        "messages": (*task.prompt, {"role": "assistant", "content": f"answer {member}"}),
        "transcript": Transcript().append(SpanKind.PROMPT, [1]).append_sampled(sampled),
        "outcome": Outcome.FINISHED,
        "turns": 1,
        "completion_start": 1,
    }
    return Episode(**{**fields, **changes})


def played(*episodes: Episode, environments: tuple[Any, ...] | None = None) -> PlayedGroup:
    given = environments or (None,) * len(episodes)
    return PlayedGroup(group=Group(task=episodes[0].task, episodes=episodes), environments=given)


def pair() -> PlayedGroup:
    return played(episode(0), episode(1))


async def scored(function: Any, group: PlayedGroup | None = None, **options: Any):
    return await score([group or pair()], reward_functions(function), **options)


def rewards_of(result: Any, name: str) -> list[float | None]:
    return [one.rewards[name] for group in result.groups for one in group.episodes]


@pytest.mark.contract(32)
async def test_a_function_gets_lists_aligned_with_the_episodes() -> None:
    seen: dict[str, Any] = {}

    def look(**kwargs: Any) -> list[float]:
        seen.update(kwargs)
        return [1.0, 2.0]

    state = object()
    group = played(episode(0), episode(1), environments=("env 0", "env 1"))
    result = await scored(look, group, trainer_state=state)
    assert seen["prompts"] == [[{"role": "user", "content": "Play."}]] * 2
    assert [one[0]["content"] for one in seen["completions"]] == ["answer 0", "answer 1"]
    assert seen["completion_ids"] == [[5, 2], [5, 2]]
    assert seen["secret"] == [10, 11]
    assert seen["environments"] == ["env 0", "env 1"]
    assert seen["trainer_state"] is state
    assert "prompt" not in seen
    assert rewards_of(result, "look") == [1.0, 2.0]
    assert [one.reward for one in result.groups[0].episodes] == [1.0, 2.0]


@pytest.mark.contract(32)
async def test_without_environments_there_is_no_such_argument() -> None:
    def look(**kwargs: Any) -> list[float]:
        assert "environments" not in kwargs
        return [0.0, 0.0]

    await scored(look)


async def test_a_function_without_kwargs_gets_what_it_names() -> None:
    def by_secret(secret: list[int], unknown: int = 3) -> list[int]:
        return [value * unknown for value in secret]

    assert rewards_of(await scored(by_secret), "by_secret") == [30.0, 33.0]


async def test_an_unknown_required_parameter_is_named() -> None:
    def needs(answer: list[str]) -> list[float]:
        return [0.0, 0.0]

    with pytest.raises(UsageError, match=r"'needs' has a parameter 'answer'"):
        await scored(needs)


@pytest.mark.contract(32, 33)
@pytest.mark.report("P053")
async def test_weights_multiply_and_none_counts_nothing() -> None:
    def first(**_: Any) -> list[float | None]:
        return [1.0, None]

    def second(**_: Any) -> list[float | None]:
        return [10.0, 20.0]

    functions = reward_functions([first, second], [0.5, 0.1])
    result = await score([pair()], functions)
    assert [one.reward for one in result.groups[0].episodes] == [1.5, 2.0]
    assert (result.names, result.weights) == (("first", "second"), (0.5, 0.1))


@pytest.mark.contract(32)
@pytest.mark.report("P053")
async def test_an_episode_no_function_applies_to_has_no_reward() -> None:
    def abstain(**_: Any) -> list[float | None]:
        return [None, float("nan")]

    result = await scored(abstain)
    assert [one.reward for one in result.groups[0].episodes] == [None, None]


@pytest.mark.contract(33)
async def test_environment_rewards_come_after_the_functions_with_weight_one() -> None:
    def bonus(**_: Any) -> list[float]:
        return [1.0, 1.0]

    group = played(episode(0, rewards={"Cat": 0.25}), episode(1, rewards={"Dog": 0.75}))
    result = await score([group], reward_functions([bonus], [2.0]))
    assert (result.names, result.weights) == (("bonus", "Cat", "Dog"), (2.0, 1.0, 1.0))
    assert result.groups[0].episodes[0].rewards == {"bonus": 1.0, "Cat": 0.25, "Dog": None}
    assert [one.reward for one in result.groups[0].episodes] == [2.25, 2.75]


async def test_a_function_named_like_an_environment_is_refused() -> None:
    def Cat(**_: Any) -> list[float]:
        return [0.0]

    with pytest.raises(UsageError, match="'Cat'"):
        await scored(Cat, played(episode(0, rewards={"Cat": 1.0})))


@pytest.mark.report("P101")
async def test_faults_are_not_shown_and_have_no_reward() -> None:
    def count(completions: list[Any]) -> list[float]:
        return [float(len(completions))] * len(completions)

    fault = episode(1, outcome=Outcome.INFRASTRUCTURE_FAULT, rewards={})
    result = await scored(count, played(episode(0), fault, episode(2)))
    assert [one.reward for one in result.groups[0].episodes] == [2.0, None, 2.0]


@pytest.mark.report("P066")
async def test_nothing_is_called_when_everything_failed() -> None:
    def boom(**_: Any) -> list[float]:
        raise AssertionError

    fault = episode(0, outcome=Outcome.ENVIRONMENT_FAULT)
    result = await scored(boom, played(fault))
    assert result.groups[0].episodes[0].reward is None


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([1.0], "returned 1 values for 2 completions"),
        (3.0, r"returned 3\.0"),
        ("ab", "returned 'ab'"),
        (None, "returned None"),
        (np.array(3.0), r"returned array\(3"),
        (torch.tensor(3.0), r"returned tensor\(3"),
        (iter([1.0, 2.0]), "returned <list_iterator"),
        ({"a": 1.0, "b": 2.0}, "returned {'a'"),
        ([1.0, [1.0]], r"the value \[1.0\]"),
        ([1.0, np.array([1.0, 2.0])], r"the value array\("),
        ([1.0, torch.tensor([1.0, 2.0])], r"the value tensor\("),
        ([1.0, 10**400], "the value 1000"),
        ([1.0, "high"], "the value 'high'"),
        ([1.0, float("inf")], "returned inf"),
        ([1.0, 1e308], "below 1e\\+100"),
    ],
)
@pytest.mark.contract(32)
@pytest.mark.report("P053")
async def test_a_bad_return_names_the_function_and_the_value(returned: Any, message: str) -> None:
    def bad(**_: Any) -> Any:
        return returned

    with pytest.raises(UsageError, match=rf"'bad' .*{message}|'bad' {message}"):
        await scored(bad)


@pytest.mark.parametrize(
    ("returned", "rewards"),
    [
        ([True, 3], [1.0, 3.0]),
        ((Fraction(1, 2), Decimal("0.25")), [0.5, 0.25]),
        ([np.bool_(True), np.float32(0.5)], [1.0, 0.5]),
        (np.array([1, 0]), [1.0, 0.0]),
        (np.array([[0.5], [0.25]]), [0.5, 0.25]),
        (np.array([np.nan, 1.0]), [None, 1.0]),
        (torch.tensor([1.0, 0.5]), [1.0, 0.5]),
        ([torch.tensor(0.5), None], [0.5, None]),
    ],
    ids=str,
)
@pytest.mark.report("P053")
async def test_numbers_of_all_kinds_are_rewards(returned: Any, rewards: list[float | None]) -> None:
    def mixed(**_: Any) -> Any:
        return returned

    assert rewards_of(await scored(mixed), "mixed") == rewards


async def test_an_error_in_a_function_is_one_sentence() -> None:
    def broken(**_: Any) -> list[float]:
        raise KeyError("gold")

    with pytest.raises(UsageError, match=r"Reward function 'broken' raised KeyError: 'gold'"):
        await scored(broken)


@pytest.mark.report("P133")
async def test_a_slow_function_does_not_block_the_loop() -> None:
    def slow(**_: Any) -> list[float]:
        time.sleep(0.05)
        return [0.0, 0.0]

    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await scored(slow)
    ticking.cancel()
    assert ticks >= 3


@pytest.mark.contract(33)
async def test_asynchronous_functions_run_together() -> None:
    both = asyncio.Barrier(2)

    async def one(**_: Any) -> list[float]:
        await both.wait()
        return [1.0, 1.0]

    async def two(**_: Any) -> list[float]:
        await both.wait()
        return [2.0, 2.0]

    async with asyncio.timeout(2):
        result = await scored([one, two])
    assert result.groups[0].episodes[0].rewards == {"one": 1.0, "two": 2.0}


@pytest.mark.contract(32)
async def test_logged_metrics_are_averaged_and_columns_kept() -> None:
    def logs(log_metric: Any, log_extra: Any, secret: list[int]) -> list[float]:
        log_metric("accuracy", 1.0)
        log_metric("accuracy", 0.0)
        log_extra("secret", secret)
        return [0.0, 0.0]

    result = await scored(logs)
    assert result.metrics == {"accuracy": 0.5}
    assert result.extra == {"secret": [10, 11]}


async def test_an_episode_that_timed_out_at_once_has_an_empty_answer() -> None:
    def content(completions: list[Any]) -> list[float]:
        return [float(len(one[0]["content"])) for one in completions]

    early = episode(0, outcome=Outcome.TIMED_OUT, completion_start=2)
    assert rewards_of(await scored(content, played(early)), "content") == [0.0]


@pytest.mark.contract(33)
@pytest.mark.report("P083")
def test_names_come_from_functions_partials_and_objects() -> None:
    class Judge:
        def __call__(self, **_: Any) -> list[float]:
            return []

    def named(**_: Any) -> list[float]:
        return []

    names = [each.name for each in reward_functions([named, partial(named, x=1), Judge()])]
    assert names == ["named", "named_2", "Judge"]


@pytest.mark.report("P083")
async def test_everything_that_can_be_called_scores_under_a_name_of_its_own() -> None:
    class Judge:
        def __call__(self, **_: Any) -> list[float]:
            return [3.0, 3.0]

        def strictly(self, secret: list[int]) -> list[float]:
            return [4.0] * len(secret)

    class Waits:
        async def __call__(self, **_: Any) -> list[float]:
            return [5.0, 5.0]

    async def later(much: float, **_: Any) -> list[float]:
        return [much, much]

    functions: list[Any] = [lambda **_: [1.0, 1.0], lambda **_: [2.0, 2.0]]
    functions += [Judge(), Judge().strictly, Waits(), partial(later, 6.0)]
    result = await scored(functions)
    assert result.groups[0].episodes[0].rewards == {
        "<lambda>": 1.0,
        "<lambda>_2": 2.0,
        "Judge": 3.0,
        "strictly": 4.0,
        "Waits": 5.0,
        "later": 6.0,
    }


def test_one_function_need_not_be_a_list() -> None:
    def alone(**_: Any) -> list[float]:
        return []

    assert [each.name for each in reward_functions(alone)] == ["alone"]
    assert reward_functions(None) == ()


@pytest.mark.contract(33)
def test_the_number_of_weights_is_checked() -> None:
    with pytest.raises(UsageError, match="2 values for 1 reward functions"):
        reward_functions([print], [1.0, 2.0])


def test_something_not_callable_is_named() -> None:
    with pytest.raises(UsageError, match=r"reward_funcs\[0\] is 'accuracy'"):
        reward_functions(["accuracy"])  # type: ignore[list-item]
