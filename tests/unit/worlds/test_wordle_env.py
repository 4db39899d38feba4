import inspect
import random
from collections import Counter

import pytest

from corral.worlds.wordle import Wordle
from corral.worlds.wordle.feedback import mark
from corral.worlds.wordle.solver import (
    OPENER,
    candidates,
    careless_solver,
    random_player,
    solver,
    what_is_known,
)
from corral.worlds.wordle.words import accepted, secrets


def game(secret: str, *guesses: str) -> Wordle:
    env = Wordle()
    env.reset(secret=secret)
    for guess in guesses:
        env.guess(guess)
    return env


WRONG = ("mouth", "light", "sugar", "baker", "crowd", "fifth")


def test_answer_shows_letters_marks_and_guesses_left():
    env = game("stone")
    assert env.guess("crane") == "C R A N E\nX X X G G\n5 guesses left."


def test_last_guess_is_announced_in_the_singular():
    env = game("piano", *WRONG[:4])
    assert env.guess(WRONG[4]).endswith("\n1 guess left.")


def test_finding_the_word_wins_and_ends():
    env = game("stone")
    assert env.guess("stone") == "S T O N E\nG G G G G\nYou won."
    assert (env.won, env.done, env.guesses) == (True, True, 1)


def test_six_wrong_guesses_lose_and_tell_the_word():
    env = game("piano", *WRONG[:5])
    assert not env.done
    assert env.guess(WRONG[5]).endswith("You lost. The word was piano.")
    assert (env.won, env.done, env.guesses) == (False, True, 6)


@pytest.mark.parametrize("ending", [("stone",), ("toolong", "xqzjk")])
def test_every_guess_after_the_end_raises(ending: tuple[str, ...]):
    env = game("stone", *ending)
    with pytest.raises(ValueError, match=r"^Game over\.$"):
        env.guess("crane")


def test_guess_before_the_first_reset_raises():
    with pytest.raises(ValueError, match="Game over"):
        Wordle().guess("crane")


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("cranes", "Your word must be exactly 5 letters."),
        ("", "Your word must be exactly 5 letters."),
        ("crane", "You have already guessed 'crane'."),
        ("xqzjk", "'xqzjk' is not an English word."),
    ],
)
def test_invalid_guess_is_answered_with_the_reason_and_costs_no_guess(word: str, sentence: str):
    env = game("stone", "crane")
    assert env.guess(word) == f"{sentence} Try another."
    assert (env.guesses, env.invalid_guesses, env.done) == (1, 1, False)


def test_second_invalid_guess_in_a_row_ends_the_game():
    env = game("stone", "xqzjk")
    assert env.guess("xqzjj").endswith("you lost.")
    assert (env.done, env.won, env.invalid_guesses) == (True, False, 2)


def test_invalid_guesses_with_a_valid_one_between_do_not_end_the_game():
    env = game("stone", "xqzjk", "crane", "xqzjk")
    assert not env.done
    assert env.invalid_guesses == 2


def test_case_spaces_and_brackets_do_not_matter():
    assert game("stone", " [STONE] ").won


@pytest.mark.parametrize(
    ("secret", "guesses", "win", "partial", "invalid"),
    [
        ("piano", ("piano",), 1 + 5 / 12, 0.0, 0.0),
        ("piano", (*WRONG[:5], "piano"), 1.0, 0.0, 0.0),
        ("stone", ("phone", *WRONG[:5]), 0.0, 0.3, 0.0),  # _ _ o n e
        ("piano", ("xqzjk",), 0.0, 0.0, -0.1),
        ("stone", ("xqzjk", "phone", "xqzjk", "stone"), 1 + 1 / 3, 0.0, -0.2),
        ("piano", (), 0.0, 0.0, 0.0),
    ],
)
@pytest.mark.contract(52)
def test_rewards(secret: str, guesses: tuple[str, ...], win: float, partial: float, invalid: float):
    env = game(secret, *guesses)
    assert env.win_reward == pytest.approx(win)
    assert env.partial_reward == pytest.approx(partial)
    assert env.invalid_reward == pytest.approx(invalid)
    assert env.get_reward() == pytest.approx(win + partial + invalid)
    assert env.get_reward() == pytest.approx(sum(env.reward_parts.values()))


def test_partial_reward_counts_the_best_guess_not_the_last():
    assert game("stone", "phone", "light").best_greens == 3


def test_metrics_tell_the_game_as_it_stands():
    env = game("stone", "xqzjk", "phone")
    assert env.metrics["win"] == 0.0
    assert env.metrics["guesses"] == 1.0
    assert env.metrics["invalid_guesses"] == 1.0


def test_reset_forgets_the_game_before():
    env = game("stone", "xqzjk", "stone")
    assert env.reset(secret="piano") is None
    state = (env.done, env.won, env.guesses, env.invalid_guesses, env.best_greens, env.history)
    assert state == (False, False, 0, 0, 0, [])
    assert env.metrics["invalid_guesses"] == 0.0


@pytest.mark.parametrize("secret", ["Stone", "xqzjk", "cranes", ""])
def test_a_secret_that_cannot_be_guessed_is_refused(secret: str):
    with pytest.raises(ValueError, match=f"secret='{secret}'"):
        Wordle().reset(secret=secret)


def test_no_text_shows_the_secret_before_the_end():
    env = Wordle()
    rng = random.Random(5)
    for secret in secrets():
        texts = [env.reset(secret=secret) or ""]
        while not env.done:
            invalid = rng.random() < 0.2
            word = "xqzjk" if invalid else rng.choice([w for w in secrets() if w != secret])
            text = env.guess(word)
            if not env.done:
                texts.append(text)
        shown = "\n".join(texts).lower().replace(" ", "")
        assert secret not in shown
    tool_text = (inspect.getdoc(Wordle.guess) or "").lower()
    assert not any(f" {secret} " in tool_text for secret in secrets() if secret != "place")


def test_players_play_the_same_whatever_the_secret_attribute_says():
    env = game("stone", "crane")
    players = (solver(), random_player)
    first = [play(env, "", random.Random(7)) for play in players]
    env._secret = "zebra"
    again = [play(env, "", random.Random(7)) for play in players]
    assert first == again


def test_solver_guesses_are_consistent_and_usually_win():
    wins = 0
    for seed, secret in enumerate(secrets()[::3]):
        env, rng = game(secret), random.Random(seed)
        while not env.done:
            action = solver()(env, "", rng)
            assert action is not None
            if env.history:
                assert action.arguments["word"] in candidates(env.history)
            env.guess(**action.arguments)
        wins += env.won
        assert env.invalid_guesses == 0
    assert wins >= 50


def test_solver_opens_with_its_opener():
    action = solver(opener="crane")(game("stone"), "", random.Random(0))
    assert action is not None
    assert action.arguments == {"word": "crane"}


def test_solver_copes_with_a_secret_outside_its_list():
    assert "crane" not in secrets()
    env, rng = game("crane"), random.Random(0)
    while not env.done:
        action = solver()(env, "", rng)
        assert action is not None
        env.guess(**action.arguments)
    assert env.invalid_guesses == 0


def test_opener_splits_the_secrets_better_than_other_words():
    def left(word: str) -> int:
        return sum(count**2 for count in Counter(mark(s, word) for s in secrets()).values())

    assert left(OPENER) < min(left(word) for word in ("crane", "stare", "raise", *secrets()))


def test_careless_player_repeats_its_last_guess_from_the_third_on():
    play, rng, env = careless_solver(slip_rate=1.0), random.Random(0), game("goose")
    words = []
    while not env.done:
        action = play(env, "", rng)
        assert action is not None
        words.append(action.arguments["word"])
        env.guess(words[-1])
    assert words[:2] == [action_of(solver(), "goose", 0), action_of(solver(), "goose", 1)]
    assert words[2:] == [words[1], words[1]]
    assert (env.won, env.invalid_guesses) == (False, 2)


def test_careless_player_without_slips_is_the_solver():
    history = [("slate", mark("goose", "slate")), ("nurse", mark("goose", "nurse"))]
    env = game("goose", *[word for word, _ in history])
    assert careless_solver(slip_rate=0.0)(env, "", random.Random(0)) == solver()(
        env, "", random.Random(0)
    )


def action_of(policy, secret: str, place: int) -> str:
    env, rng = game(secret), random.Random(0)
    for _ in range(place):
        env.guess(**policy(env, "", rng).arguments)
    return policy(env, "", rng).arguments["word"]


def test_players_stop_at_the_end():
    env = game("stone", "stone")
    assert solver()(env, "", random.Random(0)) is None
    assert random_player(env, "", random.Random(0)) is None


@pytest.mark.parametrize(
    ("history", "line"),
    [
        ([], ""),
        ([("crane", "XXXGG")], "___ne -acr"),
        ([("crane", "XYXYG")], "____e +nr -ac"),
        ([("eerie", "YYXXX")], "_____ +e -ir"),
        ([("crane", "YXXXX"), ("cloud", "GXXXX")], "c____ -adelnoru"),
    ],
)
def test_thought_says_what_is_known(history: list[tuple[str, str]], line: str):
    assert what_is_known(history) == line


def test_word_lists_are_as_described():
    assert len(set(secrets())) == len(secrets()) == 156
    assert all(len(w) == 5 and w.isascii() and w.isalpha() and w.islower() for w in accepted())
    assert set(secrets()) <= accepted()
    assert list(secrets()) == sorted(secrets())
