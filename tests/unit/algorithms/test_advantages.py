import math

import pytest

from corral.algorithms import group_advantages
from corral.errors import UsageError

TOLERANCE = 1e-6


def _column(values: list[float | None]) -> list[list[float | None]]:
    return [[value] for value in values]


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([1, 0, 0, 1], [0.865875, -0.865875, -0.865875, 0.865875]),
        ([1, 0, 0, 0], [1.4997, -0.4999, -0.4999, -0.4999]),
        ([1, 0.5, -0.1, None], [0.968188, 0.060512, -1.0287, 0.0]),
        ([0.3, 0.3, 0.3], [0.0, 0.0, 0.0]),
    ],
)
@pytest.mark.contract(35)
def test_one_group_has_the_reference_advantages(rewards, expected):
    result = group_advantages(_column(rewards), [0] * len(rewards))
    assert result.values == pytest.approx(expected, abs=TOLERANCE)
    assert result.rewards == rewards


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        ("normalize_then_sum", [0.547576, -0.547576, -1.095306, 1.095306]),
        ("sum_then_normalize", [0.0, 0.0, -0.707057, 0.707057]),
    ],
)
@pytest.mark.contract(35)
def test_two_functions_aggregate_like_the_reference(aggregation, expected):
    rewards = [[1, 0], [0, 2], [1, 1], [3, 1]]
    result = group_advantages(rewards, [0, 0, 1, 1], weights=[1, 0.5], aggregation=aggregation)
    assert result.values == pytest.approx(expected, abs=TOLERANCE)
    assert result.rewards == [1.0, 1.0, 1.5, 3.5]


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
@pytest.mark.report("P054")
def test_equal_rewards_give_exactly_zero_however_they_round(scale):
    # 0.2 as float32, whose mean over seven differs from it in the last place.
    reward = 0.20000000298023224
    rewards = _column([reward] * 7 + [0.0, 1.0])
    result = group_advantages(rewards, [0] * 7 + [1, 1], scale=scale)
    assert result.values[:7] == [0.0] * 7
    assert result.values[7] < 0.0 < result.values[8]


@pytest.mark.report("P054")
def test_equal_rewards_are_reported_as_teaching_nothing():
    result = group_advantages(_column([0.2] * 3 + [0.0, 1.0]), [0, 0, 0, 1, 1])
    assert result.std_is_zero == [True, True, True, False, False]


@pytest.mark.contract(35)
def test_batch_scale_divides_by_the_deviation_of_all_episodes():
    result = group_advantages(_column([0, 1, 0, 3]), [0, 0, 1, 1], scale="batch")
    std = math.sqrt((1 + 0 + 1 + 4) / 3)
    expected = [-0.5, 0.5, -1.5, 1.5]
    assert result.values == pytest.approx([value / (std + 1e-4) for value in expected])


@pytest.mark.contract(35)
def test_no_scale_only_centres():
    assert group_advantages(_column([0, 1, 5]), [0, 0, 0], scale="none").values == [-2, -1, 3]


def test_members_of_a_group_need_not_be_adjacent_and_groups_may_differ_in_size():
    result = group_advantages(_column([1, 10, 3, 10, 5]), [7, 2, 7, 2, 7], scale="none")
    assert result.values == [-2.0, 0.0, 0.0, 0.0, 2.0]


def test_an_abstaining_function_leaves_the_others():
    result = group_advantages([[1.0, None], [None, 2.0]], [0, 0], scale="none")
    assert result.rewards == [1.0, 2.0]
    assert result.values == [-0.5, 0.5]


@pytest.mark.report("P053")
def test_nan_counts_as_abstaining():
    result = group_advantages([[1.0, math.nan], [0.0, math.nan]], [0, 0], scale="none")
    assert result.values == [0.5, -0.5]


@pytest.mark.contract(32)
@pytest.mark.report("P053")
def test_an_episode_nothing_scored_has_no_reward_and_does_not_move_the_baseline():
    result = group_advantages([[None, None], [1.0, 0.0], [0.0, 0.0]], [0, 0, 0], scale="none")
    assert result.rewards == [None, 1.0, 0.0]
    assert result.values == [0.0, 0.5, -0.5]


@pytest.mark.parametrize("aggregation", ["sum_then_normalize", "normalize_then_sum"])
@pytest.mark.parametrize("rewards", [[None, None], [None, 0.7], [0.7]])
@pytest.mark.report("P066")
def test_nothing_to_compare_with_gives_zero(aggregation, rewards):
    result = group_advantages(_column(rewards), [0] * len(rewards), aggregation=aggregation)
    assert result.values == [0.0] * len(rewards)
    assert all(result.std_is_zero)


def test_no_episodes_give_no_advantages():
    assert group_advantages([], []).values == []


def test_an_infinite_reward_is_refused():
    with pytest.raises(UsageError, match="inf"):
        group_advantages([[math.inf]], [0])


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(UsageError, match="one weight a function"):
        group_advantages([[1.0, 2.0]], [0], weights=[1.0])
    with pytest.raises(UsageError, match="one group id"):
        group_advantages([[1.0]], [0, 0])
