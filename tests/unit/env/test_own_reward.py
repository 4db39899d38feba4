"""An environment's own reward as columns: its parts, or one number."""

from types import SimpleNamespace
from typing import Any

import pytest

from corral.env import call_rewards, prepare, reward_parts
from corral.errors import EnvironmentFault, UsageError


class Game:
    parts: Any = {"won": 1.0, "slips": -0.2}
    total: float | None = 0.8

    def reset(self, **kwargs: Any) -> None:
        return None

    def get_reward(self) -> float | None:
        return self.total

    @property
    def reward_parts(self) -> Any:
        return self.parts


def game(parts: Any, total: float | None) -> Game:
    made = Game()
    made.parts, made.total = parts, total
    return made


@pytest.mark.parametrize(
    ("parts", "total", "columns"),
    [
        ({"won": 1, "slips": -0.2}, 0.8, {"won": 1.0, "slips": -0.2}),
        ({"won": 1.0, "other": None}, 1.0, {"won": 1.0, "other": None}),
        ({"won": None, "other": None}, None, {"won": None, "other": None}),
        ({"a": 0.1, "b": 0.2}, 0.3, {"a": 0.1, "b": 0.2}),
        ({}, 0.5, {"Game": 0.5}),
        (None, None, {"Game": None}),
        ("no mapping", 0.5, {"Game": 0.5}),
    ],
)
async def test_parts_are_columns_in_place_of_the_class(parts: Any, total: Any, columns: Any):
    assert await call_rewards(game(parts, total), "Game") == columns


@pytest.mark.parametrize(
    ("parts", "total", "words"),
    [
        ({"won": 1.0}, 0.5, r"get_reward returned 0.5, but its reward_parts .* add up to 1.0"),
        ({"won": 1.0}, None, "get_reward returned None"),
        ({"won": None}, 0.0, "add up to None"),
        ({"won": "1"}, 1.0, r"Game.reward_parts\['won'\] returned '1'"),
        ({"won": float("nan")}, 1.0, "Return a finite number"),
    ],
)
async def test_parts_that_cannot_be_the_reward_are_a_fault(parts: Any, total: Any, words: str):
    with pytest.raises(EnvironmentFault, match=words):
        await call_rewards(game(parts, total), "Game")


def test_columns_are_known_before_anything_is_played():
    class Plain(Game):
        reward_parts = None

    assert prepare(Game).reward_columns == ("won", "slips")
    assert prepare(Plain).reward_columns == ("Plain",)


def test_parts_without_their_sum_are_refused():
    class Unsummed:
        reward_parts = {"won": 1.0}

        def reset(self, **kwargs: Any) -> None:
            return None

    with pytest.raises(UsageError, match=r"Unsummed has reward_parts but no get_reward\. Add:"):
        prepare(Unsummed)


def test_parts_that_need_a_reset_are_told_when_the_environment_is_examined():
    class Late(Game):
        @property
        def reward_parts(self) -> dict[str, float]:
            return {"won": self.won}  # type: ignore[attr-defined]

    with pytest.raises(EnvironmentFault, match=r"Late\.reward_parts raised AttributeError"):
        prepare(Late)


def test_an_environment_without_parts_has_none():
    assert reward_parts(SimpleNamespace()) == {}
