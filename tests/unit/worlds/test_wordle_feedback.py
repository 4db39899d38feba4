from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.worlds.wordle.feedback import is_consistent, mark, render

# Four letters only, so that repeated ones are the rule and not the exception.
words = st.text(alphabet="abcd", min_size=5, max_size=5)


def slow_mark(secret: str, guess: str) -> str:
    """By definition, letter by letter: greens, then as many yellows as the secret has left."""
    marks = ["X"] * 5
    for letter in set(guess):
        in_guess = [place for place in range(5) if guess[place] == letter]
        in_secret = [place for place in range(5) if secret[place] == letter]
        greens = [place for place in in_guess if place in in_secret]
        others = [place for place in in_guess if place not in in_secret]
        for place in greens:
            marks[place] = "G"
        for place in others[: len(in_secret) - len(greens)]:
            marks[place] = "Y"
    return "".join(marks)


@pytest.mark.parametrize(
    ("secret", "guess", "marks"),
    [
        ("crane", "crane", "GGGGG"),
        ("stone", "crane", "XXXGG"),
        ("apple", "paper", "YYGYX"),
        ("sheep", "eerie", "YYXXX"),  # two e's to find, three guessed
        ("lemon", "onion", "XXXGG"),
        ("abbey", "babes", "YYGGX"),
        ("robot", "floor", "XXYGY"),
        ("level", "hello", "XGYYX"),
    ],
)
def test_known_answers(secret: str, guess: str, marks: str):
    assert mark(secret, guess) == marks


@given(words, words)
def test_marks_equal_the_definition(secret: str, guess: str):
    assert mark(secret, guess) == slow_mark(secret, guess)


@given(words, words)
def test_a_letter_gets_as_many_marks_as_it_has_occurrences(secret: str, guess: str):
    marked = Counter(g for g, m in zip(guess, mark(secret, guess), strict=True) if m != "X")
    assert marked == Counter(secret) & Counter(guess)


@given(words, st.lists(words, max_size=4))
def test_the_secret_is_consistent_with_all_its_answers(secret: str, guesses: list[str]):
    assert is_consistent(secret, [(guess, mark(secret, guess)) for guess in guesses])


def test_a_word_that_would_have_answered_otherwise_is_inconsistent():
    history = [("crane", "XXXGG"), ("alone", "XXGGG")]
    assert is_consistent("phone", history)
    assert not is_consistent("plane", history)
    assert not is_consistent("alone", history)


def test_rendering_has_letters_above_marks():
    assert render("crane", "XGYXX") == "C R A N E\nX G Y X X"
