from collections import Counter

import pytest

from corral.env import check_reset_columns
from corral.errors import UsageError
from corral.worlds import WORLDS, wordle
from corral.worlds.tasks import FIRST_HELD_OUT_SEED, draw_in_passes, place_of, spread
from support.worlds_here import WORLDS_HERE

EVERY_WORLD = pytest.mark.parametrize("name", sorted(WORLDS))


@EVERY_WORLD
def test_the_seed_decides_the_rows(name: str):
    world = WORLDS[name]
    assert world.tasks(3, 40) == world.tasks(3, 40)
    assert world.tasks(3, 40) != world.tasks(4, 40)


@EVERY_WORLD
def test_evaluation_rows_are_fixed(name: str):
    assert WORLDS[name].evaluation_tasks(4) == WORLDS[name].evaluation_tasks(4)


@EVERY_WORLD
def test_rows_have_a_prompt_and_reset_takes_them(name: str):
    world = WORLDS[name]
    for row in world.tasks(0, 5):
        assert isinstance(row["prompt"], str)
        env = world.factory()
        check_reset_columns(env, row)
        if name in WORLDS_HERE:
            env.reset(**row)


def test_wordle_deals_every_secret_before_repeating_one():
    counts = Counter(row["secret"] for row in wordle.tasks(1, 2 * 156 + 10))
    assert set(counts.values()) == {2, 3}
    assert sum(counts.values()) == 322


def test_wordle_evaluation_is_thirty_different_words_from_the_whole_alphabet():
    words = [row["secret"] for row in wordle.evaluation_tasks()]
    # Written out: a changed evaluation would make published numbers incomparable.
    assert words == EVALUATION_WORDS.split()
    assert len(set(words)) == 30


EVALUATION_WORDS = """
apple baker brick brush cliff cloud crown dress flame ghost goose guard knife lemon mouse music
nurse paint photo power river scarf sheet snake sound sugar table track watch zebra
"""


def test_spread_takes_one_of_each_stretch():
    drawn = spread(range(100), seed=1, count=10)
    assert [item // 10 for item in drawn] == list(range(10))
    assert spread(range(10), seed=1, count=10) == list(range(10))
    assert spread(range(10), seed=1, count=0) == []


@pytest.mark.parametrize("count", [-1, 11])
def test_spread_refuses_more_than_there_is(count: int):
    with pytest.raises(UsageError, match=f"count={count}"):
        spread(range(10), seed=0, count=count)


def test_draw_in_passes_refuses_negative_counts():
    with pytest.raises(UsageError, match="count=-1"):
        draw_in_passes(range(10), seed=0, count=-1)


@pytest.mark.parametrize(("count", "trained", "kept"), [(40, 36, 4), (4, 3, 1), (2, 1, 1)])
def test_seeds_go_round_the_tasks_and_evaluations_have_the_last_tenth(
    count: int, trained: int, kept: int
):
    places = [place_of(seed, count) for seed in range(3 * count)]
    assert places[: trained + 1] == [*range(trained), 0]
    assert set(places) == set(range(trained))
    held_out = [place_of(FIRST_HELD_OUT_SEED + one, count) for one in range(2 * kept)]
    assert held_out == 2 * list(range(trained, count))


def test_one_task_is_played_in_evaluations_too_and_none_is_refused():
    assert place_of(7, 1) == place_of(FIRST_HELD_OUT_SEED, 1) == 0
    with pytest.raises(UsageError, match="count=0"):
        place_of(7, 0)
