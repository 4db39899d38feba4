import pytest

from corral.errors import UsageError
from corral.rewards import excess, repetition, share, soft_overlong, weighted_sum


@pytest.mark.parametrize(
    ("reached", "goal", "credit"), [(0, 4, 0.0), (3, 4, 0.75), (5, 4, 1.0), (-1, 4, 0.0)]
)
def test_a_share_is_what_is_reached_of_the_goal(reached: float, goal: float, credit: float):
    assert share(reached, goal) == credit


@pytest.mark.parametrize("goal", [0, -1, float("nan")])
def test_a_share_of_nothing_is_refused(goal: float):
    with pytest.raises(UsageError, match="needs a goal above 0"):
        share(1, goal)


@pytest.mark.parametrize(
    ("count", "options", "cost"),
    [
        (0, {}, 0.0),
        (3, {}, 0.3),
        (3, {"allowed": 2}, 0.1),
        (2, {"allowed": 2}, 0.0),
        (1, {"allowed": 2}, 0.0),
        (9, {"at_most": 0.5}, 0.5),
    ],
)
def test_only_the_excess_costs(count: int, options: dict[str, float], cost: float):
    assert excess(count, each=0.1, **options) == pytest.approx(cost)


def test_repeating_costs_twice_as_much_each_time_up_to_a_limit():
    assert [repetition(times) for times in range(7)] == [0, 1, 2, 4, 8, 10, 10]
    assert repetition(10**6) == 10
    assert repetition(3, at_most=3) == 3


@pytest.mark.parametrize(
    ("tokens", "punishment"), [(0, 0.0), (80, 0.0), (85, -0.25), (100, -1.0), (500, -1.0)]
)
def test_the_overlong_punishment_falls_over_the_margin(tokens: int, punishment: float):
    assert soft_overlong(tokens, limit=100, margin=20) == pytest.approx(punishment)


@pytest.mark.parametrize("margin", [0, 101])
def test_a_margin_that_does_not_fit_is_refused(margin: int):
    with pytest.raises(UsageError, match=f"margin={margin}: must be from 1 to limit=100"):
        soft_overlong(1, limit=100, margin=margin)


def test_only_rewards_that_apply_are_added_up():
    weights = {"a": 1.0, "b": 0.5, "c": 2.0}
    assert weighted_sum({"a": 1.0, "b": 1.0, "c": None}, weights) == 1.5
    assert weighted_sum({"a": None, "b": None, "c": None}, weights) is None
