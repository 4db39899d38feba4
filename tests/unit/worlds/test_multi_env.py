"""Two games in one class: a column chooses, tools of the other raise, rewards are told apart."""

from collections import Counter

import pytest

from corral.env import call_reset, call_rewards, prepare
from corral.worlds import catch, find_world, wordle
from corral.worlds.multi_env import WORLD, WordleAndCatch, evaluation_tasks, tasks
from corral.worlds.play import play_scripted


def games(env: str) -> WordleAndCatch:
    made = WordleAndCatch()
    made.reset(env=env, secret="stone", seed=3, prompt="ignored")
    return made


def test_all_tools_are_offered_with_the_words_of_their_games():
    tools = {tool["function"]["name"]: tool for tool in prepare(WordleAndCatch).tools.schemas}
    own = [*prepare(wordle.Wordle).tools.schemas, *prepare(catch.Catch).tools.schemas]
    assert tools == {tool["function"]["name"]: tool for tool in own}


def test_the_column_chooses_the_game():
    assert games("wordle").guess("crane").startswith("C R A N E")
    assert "x" in games("catch").stay()
    with pytest.raises(ValueError, match="env='chess': must be one of wordle, catch"):
        games("chess")


def test_a_tool_of_the_other_game_raises_and_changes_nothing():
    playing_catch, playing_wordle = games("catch"), games("wordle")
    with pytest.raises(ValueError, match="This is catch, which has no such tool"):
        playing_catch.guess("crane")
    with pytest.raises(ValueError, match="This is wordle"):
        playing_wordle.move("left")
    with pytest.raises(ValueError, match="This is wordle"):
        playing_wordle.stay()
    assert playing_catch.metrics["steps"] == 0.0
    assert playing_wordle.metrics["guesses"] == 0.0


@pytest.mark.parametrize("env", ["wordle", "catch"])
@pytest.mark.contract(34)
async def test_each_game_has_a_reward_of_its_own_and_none_for_the_other(env: str):
    played = games(env)
    if env == "wordle":
        played.guess("phone")
    columns = await call_rewards(played, "WordleAndCatch")
    other = "catch" if env == "wordle" else "wordle"
    assert columns == {env: played.get_reward(), other: None}
    assert columns[env] == pytest.approx(0.3 if env == "wordle" else 0.0)
    assert list(prepare(WordleAndCatch).reward_columns) == ["wordle", "catch"]


def test_an_instance_goes_from_game_to_game():
    played = games("wordle")
    played.guess("stone")
    assert (played.done, played.won) == (True, True)
    played.reset(env="catch", seed=1)
    assert (played.done, played.won, played.env) == (False, False, "catch")


def test_rows_are_half_of_each_game_and_one_row_may_be_any():
    assert Counter(row["env"] for row in tasks(0, 100)) == {"wordle": 50, "catch": 50}
    assert {tasks(seed, 1)[0]["env"] for seed in range(4)} == {"wordle", "catch"}
    assert len(tasks(0, 7)) == len(evaluation_tasks(7)) == 7
    words = [row["secret"] for row in evaluation_tasks(30) if row["env"] == "wordle"]
    assert words == [row["secret"] for row in wordle.evaluation_tasks(15)]


def test_players_are_those_of_the_games():
    for seed, row in enumerate(tasks(0, 4)):
        alone = find_world(row["env"])
        both = play_scripted(WORLD, WORLD.policy("solver"), row, seed)
        one = play_scripted(alone, alone.policy("solver"), {**row, "env": None}, seed)
        assert [turn.action for turn in both.turns] == [turn.action for turn in one.turns]


async def test_a_row_without_a_game_is_refused():
    with pytest.raises(ValueError, match=r"WordleAndCatch.reset needs 'env'"):
        await call_reset(WordleAndCatch(), {"prompt": "Play."})
