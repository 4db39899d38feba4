import pytest

from corral.errors import UsageError
from corral.rewards import for_class, get_soft_overlong_punishment
from corral.rollout import reward_functions


class Chess:
    won = True


class Blitz(Chess):
    won = False


class Cards:
    points = 7


def test_a_function_for_a_class_leaves_other_environments_out():
    function = for_class(Chess, lambda game: float(game.won), name="chess")
    assert function(environments=[Chess(), Cards(), Blitz()], prompts=[]) == [1.0, None, 0.0]


def test_its_column_is_called_after_the_reader_unless_named():
    def won(game: Chess) -> float:
        return float(game.won)

    functions = [for_class(Chess, won), for_class(Chess, won, name="again")]
    assert [one.name for one in reward_functions(functions)] == ["won", "again"]


def test_the_overlong_punishment_counts_tokens():
    function = get_soft_overlong_punishment(max_completion_len=10, soft_punish_cache=4)
    assert function(completion_ids=[[1] * 6, [1] * 8, [1] * 11]) == [0.0, -0.5, -1.0]
    assert reward_functions(function)[0].name == "soft_overlong_punishment"


def test_a_margin_longer_than_the_limit_is_refused_at_once():
    with pytest.raises(UsageError, match="margin=20"):
        get_soft_overlong_punishment(max_completion_len=10, soft_punish_cache=20)
