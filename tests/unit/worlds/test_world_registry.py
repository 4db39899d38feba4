import random
from pathlib import Path
from typing import Any

import pytest

from corral.env.registry import resolve
from corral.errors import UsageError
from corral.worlds import WORLDS, find_world, guess_number, world_of
from corral.worlds.play import play_scripted
from corral.worlds.policy import random_caller

SOURCE = '''
"""A user's file."""


def tasks(seed: int, count: int) -> list[dict]:
    return [{"prompt": "Find it.", "secret": 1 + (seed + n) % 3} for n in range(count)]


class Finder:
    """Find the number.

    Second paragraph.
    """

    def __init__(self) -> None:
        self.won = False

    def reset(self, secret: int, **kwargs) -> None:
        self.secret, self.won = secret, False

    def guess(self, n: int) -> str:
        """Guess.

        Args:
            n: The number.
        """
        self.won = n == self.secret
        return "yes" if self.won else "no"
'''


def test_built_in_worlds_are_found_by_name():
    assert set(WORLDS) >= {"catch", "echo", "guess_number", "wordle"}
    assert find_world("wordle") is WORLDS["wordle"]


def test_every_built_in_world_has_a_summary_and_both_players():
    for name, world in WORLDS.items():
        assert world.name == name
        assert world.summary.endswith(".")
        assert {"random", "solver"} <= set(world.policies)


def test_a_class_in_a_file_is_a_world(tmp_path: Path):
    (tmp_path / "finder.py").write_text(SOURCE, encoding="utf-8")
    world = find_world(f"{tmp_path}/finder.py:Finder")
    assert world.summary == "Find the number."
    (row,) = world.tasks(1, 1)
    assert row["secret"] == 2
    assert world.evaluation_tasks(2)[1]["secret"] == 2
    game = play_scripted(world, world.policy("random"), row, 3)
    assert all(turn.content in ("yes", "no") for turn in game.turns)


def test_a_class_in_a_module_is_a_world():
    world = find_world("corral.worlds.echo.env:Echo")
    assert world.name == "corral.worlds.echo.env:Echo"
    assert world.tasks(0, 2) == [{"prompt": "Begin."}] * 2


def test_an_unknown_name_lists_what_there_is():
    with pytest.raises(UsageError, match=r"'wordel'.*catch, driving, .*wordle.*module:Class"):
        find_world("wordel")


def test_a_class_that_is_no_environment_is_refused():
    class NoReset:
        pass

    with pytest.raises(UsageError, match="reset"):
        world_of(NoReset, name="none")


def test_a_user_class_is_won_when_its_won_is_true():
    class Won:
        won: Any = True

        def reset(self, **kwargs: Any) -> None:
            return None

        def act(self) -> None:
            """Act."""

    world = world_of(Won, name="won")
    env = Won()
    assert world.is_win(env)
    env.won = "yes"
    assert not world.is_win(env)


def schema(**properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": "act", "parameters": parameters}}


@pytest.mark.parametrize(
    ("kind", "is_legal"),
    [
        ({"type": "integer"}, lambda v: isinstance(v, int) and 0 <= v <= 20),
        ({"type": "number"}, lambda v: isinstance(v, float)),
        ({"type": "boolean"}, lambda v: isinstance(v, bool)),
        ({"type": "string"}, lambda v: isinstance(v, str) and v.isalpha()),
        ({"type": "string", "enum": ["up", "down"]}, lambda v: v in ("up", "down")),
        ({"type": "array", "items": {"type": "integer"}}, lambda v: all(0 <= i <= 20 for i in v)),
        ({"type": "object"}, lambda v: v == {}),
        ({"type": ["integer", "boolean"]}, lambda v: isinstance(v, int)),
        ({}, lambda v: isinstance(v, str)),
    ],
)
def test_random_arguments_fit_the_schema(kind: dict[str, Any], is_legal: Any):
    play = random_caller([schema(x=kind)])
    for seed in range(20):
        action = play(object(), "", random.Random(seed))
        assert action is not None
        assert action.tool == "act"
        assert is_legal(action.arguments["x"])


def test_optional_arguments_are_left_to_their_defaults():
    tool = schema(x={"type": "integer"}, y={"type": "integer"})
    tool["function"]["parameters"]["required"] = ["x"]
    action = random_caller([tool])(object(), "", random.Random(0))
    assert action is not None
    assert set(action.arguments) == {"x"}


def test_the_random_player_stops_without_tools_and_when_done():
    class Done:
        done = True

    assert random_caller([])(object(), "", random.Random(0)) is None
    assert random_caller([schema()])(Done(), "", random.Random(0)) is None


def test_a_module_may_name_a_world_of_its_own():
    assert find_world("corral.worlds.guess_number:SMALL") is guess_number.SMALL


def test_a_world_is_no_class_where_a_class_is_wanted():
    with pytest.raises(UsageError, match="'SMALL' is not a class"):
        resolve("corral.worlds.guess_number:SMALL")
