import pytest

from corral.errors import UsageError
from corral.rollout.limits import LONGEST_TOKEN, Limits, TokenBudget


def budget(used: int = 0, *, prompt: int = 10, context: int = 1000, **limits: int) -> TokenBudget:
    given = Limits(**{"episode_tokens": 100, **limits})
    return TokenBudget(limits=given, prompt_length=prompt, max_context=context, used=used)


@pytest.mark.parametrize(
    ("used", "context", "turn_tokens", "room"),
    [
        (0, 1000, None, 100),  # the episode's own limit
        (70, 1000, None, 30),
        (70, 1000, 20, 20),  # the turn's limit
        (70, 1000, 40, 30),
        (70, 90, None, 10),  # the model's context: 90 - 10 prompt - 70 used
        (100, 1000, None, 0),
        (80, 90, None, 0),
    ],
)
def test_the_tightest_limit_bounds_the_next_turn(
    used: int, context: int, turn_tokens: int | None, room: int
) -> None:
    limits = {} if turn_tokens is None else {"turn_tokens": turn_tokens}
    assert budget(used, context=context, **limits).next_turn() == room


@pytest.mark.parametrize(("count", "is_fitting"), [(29, True), (30, True), (31, False)])
def test_a_result_may_fill_the_episode_exactly(count: int, is_fitting: bool) -> None:
    assert budget(70).fits(count) is is_fitting


@pytest.mark.parametrize(("count", "is_fitting"), [(9, True), (10, False)])
def test_a_result_must_leave_one_token_of_context(count: int, is_fitting: bool) -> None:
    assert budget(70, context=90).fits(count) is is_fitting


def test_a_text_is_beyond_the_budget_only_if_no_tokenizer_could_make_it_fit() -> None:
    assert not budget(70).is_beyond(30 * LONGEST_TOKEN)
    assert budget(70).is_beyond(31 * LONGEST_TOKEN)


@pytest.mark.parametrize(
    ("name", "value"),
    [("turns", -1), ("turn_tokens", 0), ("episode_tokens", 0), ("seconds", 0.0)],
)
def test_an_impossible_limit_is_named(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=f"{name}={value}"):
        Limits(**{name: value})  # type: ignore[arg-type]
