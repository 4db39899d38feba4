import random

import pytest

from corral.worlds.catch import WORLD, Catch, evaluation_tasks, tasks
from corral.worlds.play import play_scripted
from corral.worlds.tasks import FIRST_HELD_OUT_SEED


def game(column: int) -> Catch:
    """A game whose ball falls in a column; some seed below 100 has it."""
    for seed in range(100):
        made = Catch()
        made.reset(seed=seed)
        if made.ball == (0, column):
            return made
    raise AssertionError(f"no seed drops a ball in column {column}")


def test_the_first_grid_shows_the_ball_above_and_the_paddle_in_the_middle():
    lines = Catch().reset(seed=3).split("\n")
    assert [len(line) for line in lines] == [5] * 10
    assert lines[0].count("o") == 1
    assert lines[-1] == "..x.."
    assert set("".join(lines[1:-1])) == {"."}


def test_each_step_lets_the_ball_fall_by_one_row():
    env = game(1)
    assert env.move("right").split("\n")[1] == ".o..."
    assert env.stay().split("\n")[2] == ".o..."
    assert (env.ball, env.paddle) == ((2, 1), 3)


def test_the_paddle_stops_at_the_edges():
    env = game(0)
    for _ in range(4):
        env.move("left")
    assert env.paddle == 0
    env.move("right")
    assert env.paddle == 1


@pytest.mark.parametrize(("column", "reward"), [(2, 1.0), (3, 0.0)])
def test_after_nine_steps_the_ball_is_caught_or_missed(column: int, reward: float):
    env = game(column)
    for _ in range(8):
        env.stay()
        assert not env.done
        assert env.get_reward() == 0.0
    assert env.stay().endswith("\nCaught. Game over." if reward else "\nMissed. Game over.")
    assert (env.done, env.won, env.get_reward()) == (True, bool(reward), reward)
    with pytest.raises(ValueError, match=r"^Game over\.$"):
        env.move("left")
    with pytest.raises(ValueError, match=r"^Game over\.$"):
        env.stay()


def test_before_the_first_reset_there_is_no_game():
    with pytest.raises(ValueError, match="Game over"):
        Catch().stay()


def test_a_caught_ball_is_behind_the_paddle():
    env = game(2)
    grid = [env.stay() for _ in range(9)][-1]
    assert "o" not in grid.splitlines()[9]
    assert grid.splitlines()[9] == "..x.."


def test_a_direction_that_is_none_costs_nothing():
    def sideways(env, last_text, rng):
        from corral.worlds.policy import PolicyAction

        return PolicyAction(tool="move", arguments={"direction": "up"})

    played = play_scripted(WORLD, sideways, {"prompt": "", "seed": 1}, 0, max_calls=2)
    assert all(turn.is_error for turn in played.turns)
    assert played.metrics["steps"] == 0.0


def test_evaluation_seeds_are_never_trained_on():
    trained = {row["seed"] for row in tasks(0, 500)}
    held_out = {row["seed"] for row in evaluation_tasks(50)}
    assert max(trained) < FIRST_HELD_OUT_SEED <= min(held_out)
    assert len(held_out) == 50


def test_the_lazy_player_stays_in_most_turns_and_is_right_when_it_moves():
    lazy, env = WORLD.policies["lazy"], game(4)
    actions = [lazy(env, "", random.Random(seed)) for seed in range(400)]
    moves = [action for action in actions if action.tool == "move"]
    assert 0.1 < len(moves) / len(actions) < 0.2
    assert {action.arguments["direction"] for action in moves} == {"right"}
