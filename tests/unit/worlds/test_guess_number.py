import random

import pytest

from corral.worlds.guess_number import SMALL, GuessNumber
from corral.worlds.guess_number.solver import halving_solver, numbers_left, random_player
from corral.worlds.play import play_scripted


def game(secret: int, *guesses: int) -> GuessNumber:
    env = GuessNumber()
    env.reset(secret=secret)
    for n in guesses:
        env.guess(n)
    return env


def test_reset_says_the_range():
    assert GuessNumber().reset(secret=3) == "I picked a number from 1 to 20."
    assert GuessNumber().reset(secret=3, low=2, high=5) == "I picked a number from 2 to 5."


def test_a_range_given_to_one_game_does_not_stay():
    env = GuessNumber()
    env.reset(secret=3, low=2, high=5)
    assert env.reset(secret=3) == "I picked a number from 1 to 20."


def test_answers():
    env = game(7)
    assert [env.guess(n) for n in (3, 10, 7)] == ["higher", "lower", "correct"]
    assert env.done
    assert env.found


def test_the_last_wrong_guess_says_so_and_later_ones_raise():
    env = game(7, *[1] * 7)
    assert env.guess(2) == "higher. Game over."
    assert not env.found
    with pytest.raises(ValueError, match=r"^Game over\.$"):
        env.guess(7)


@pytest.mark.parametrize(
    ("guesses", "reward"), [((7,), 1.0), ((1, 2, 7), 0.9), ((1, 2, 3), 0.0), ((), 0.0)]
)
def test_reward_falls_a_little_with_each_guess(guesses: tuple[int, ...], reward: float):
    assert game(7, *guesses).get_reward() == pytest.approx(reward)


def test_contradictions_count_guesses_already_ruled_out():
    assert game(7, 10, 12, 3, 2, 8).metrics["contradictions"] == 2.0


def test_a_secret_outside_the_range_is_refused():
    with pytest.raises(ValueError, match="secret=21: must be from low=1 to high=20"):
        GuessNumber().reset(secret=21)


def test_halving_finds_every_number_within_five_guesses():
    for secret in range(1, 21):
        env, rng = game(secret), random.Random(secret)
        while (action := halving_solver(env, "", rng)) is not None:
            env.guess(**action.arguments)
        assert env.found
        assert env.guesses <= 5
        assert env.contradictions == 0


def test_numbers_left_follow_the_answers():
    assert numbers_left(game(7, 10, 3)) == (4, 9)


def test_random_player_stays_in_the_range_of_the_game():
    env = GuessNumber()
    env.reset(secret=4, low=3, high=5)
    drawn = {random_player(env, "", random.Random(seed)).arguments["n"] for seed in range(40)}
    assert drawn == {3, 4, 5}


def test_the_small_world_is_played_with_its_own_numbers_and_halving_always_wins() -> None:
    rows = SMALL.evaluation_tasks(10)
    assert sorted(row["secret"] for row in rows) == list(range(1, 11))
    assert {row["secret"] for row in SMALL.tasks(3, 40)} == set(range(1, 11))
    games = [
        play_scripted(SMALL, SMALL.policy("solver"), row, seed) for seed, row in enumerate(rows)
    ]
    assert games[0].observation == "I picked a number from 1 to 10."
    assert all(game.is_win for game in games)
    assert max(len(game.turns) for game in games) == 4
