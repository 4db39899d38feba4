"""Questions that a function scores."""

from pathlib import Path
from typing import Any

import pytest

from corral.env import call_get_reward, prepare
from corral.errors import EnvironmentFault, UsageError
from corral.worlds import find_world
from corral.worlds.play import play_scripted
from corral.worlds.policy import PolicyAction
from corral.worlds.questions import Questions, question_world, reward_of

ROWS = [{"question": f"{n} + 1", "solution": str(n + 1)} for n in range(4)]


def check(answer: str, row: Any) -> float:
    return float(answer.strip() == row["solution"])


def says(text: str) -> Any:
    return lambda env, shown, rng: PolicyAction(tool="answer", arguments={"text": text})


def test_an_answer_is_scored_with_the_columns_that_the_model_does_not_see():
    world = question_world(ROWS, check, name="sums")
    (row,) = world.tasks(0, 1)
    right = play_scripted(world, says(f" {row['solution']} "), row, 0)
    assert (right.observation, right.reward, right.is_win) == (row["question"], 1.0, True)
    assert [turn.content for turn in right.turns] == ["Right."]
    wrong = play_scripted(world, says("none"), row, 0)
    assert (wrong.reward, wrong.is_win, wrong.turns[0].content) == (0.0, False, "Wrong.")


async def test_a_question_is_answered_once_and_an_unanswered_one_has_no_points():
    game = Questions(check)()
    with pytest.raises(ValueError, match="answered"):
        await game.answer("1")
    game.reset(**ROWS[0])
    assert game.get_reward() == 0.0
    await game.answer("0")
    assert game.done
    with pytest.raises(ValueError, match="answered"):
        await game.answer("1")


async def test_the_best_of_several_answers_counts():
    async def share(answer: str, row: Any) -> float:
        return int(answer) / 10

    game = Questions(share, attempts=3)()
    game.reset("How much?")
    assert await game.answer("5") == "That scores 0.5. You may answer again."
    await game.answer("2")
    assert await game.answer("4") == "Wrong."
    assert (game.get_reward(), game.done, game.metrics["answers"]) == (0.5, True, 3.0)
    game.reset("And now?")
    assert await game.answer("10") == "Right."
    assert (game.won, game.done) == (True, True)


async def test_a_negative_score_is_not_hidden_by_the_nothing_before_it():
    game = Questions(lambda answer, row: -1.0)()
    game.reset("?")
    await game.answer("x")
    assert game.get_reward() == -1.0


@pytest.mark.parametrize("bad", [lambda answer, row: row["missing"], lambda *_: float("nan")])
async def test_a_check_that_fails_is_a_fault_and_no_wrong_answer(bad: Any):
    kind = prepare(Questions(bad))
    game = kind.construct().instance
    game.reset("?")
    result = await kind.tools.bind(game).call("answer", {"text": "x"})
    assert (result.content, result.is_error) == ("The answer was taken.", False)
    with pytest.raises(EnvironmentFault, match=r"raised KeyError|finite number"):
        await call_get_reward(game)


def test_rows_come_from_a_list_or_a_function_and_others_are_held_out():
    world = question_world(ROWS, check, name="sums", evaluation_rows=ROWS[:1], prompt="Add.\n")
    assert sorted(row["solution"] for row in world.tasks(3, 4)) == ["1", "2", "3", "4"]
    assert world.evaluation_tasks(2) == [{"prompt": "Add.\n", **ROWS[0]}] * 2
    made = question_world(lambda seed, count: ROWS[seed : seed + count], check, name="made")
    assert [row["solution"] for row in made.tasks(1, 2)] == ["2", "3"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: question_world([], check, name="x"), "There are no rows"),
        (lambda: question_world([{"text": "?"}], check, name="x"), "no text 'question'"),
        (lambda: Questions(check, attempts=0), "attempts=0"),
        (lambda: Questions("check"), "give a function"),  # type: ignore[arg-type]
    ],
)
def test_what_makes_no_sense_is_told(make: Any, words: str):
    with pytest.raises(UsageError, match=words):
        make()


async def test_the_same_check_scores_a_last_message():
    reward = reward_of(check)
    completions = [
        [{"role": "assistant", "content": "12"}],
        [
            {"role": "assistant", "content": "1"},
            {"role": "tool", "content": "2"},
            {"role": "assistant", "content": [{"type": "text", "text": "2"}]},
        ],
        "3",
        [{"role": "tool", "content": "4"}],
    ]
    columns = {"solution": ["1", "2", "3", "4"], "trainer_state": None}
    assert await reward(completions=completions, **columns) == [0.0, 1.0, 1.0, 0.0]
    assert reward.__name__ == "check"


def test_it_is_found_in_a_file(tmp_path: Path):
    (tmp_path / "sums.py").write_text(
        "from corral.worlds.questions import question_world\n"
        "WORLD = question_world([{'question': '1 + 1'}], lambda a, row: float(a == '2'), name='s')"
    )
    world = find_world(f"{tmp_path}/sums.py:WORLD")
    (row,) = world.tasks(0, 1)
    assert play_scripted(world, says("2"), row, 0).is_win
    assert play_scripted(world, world.policy("random"), row, 0).reward == 0.0
