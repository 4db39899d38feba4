"""Environments of Gymnasium and MiniGrid, played with the real packages."""

from typing import Any

import pytest

from corral.hosting import find_environment
from corral.worlds.play import play_scripted
from support.door_games import calling
from support.doors import games

IDS = ("CartPole-v1", "FrozenLake-v1", "Taxi-v4", "Blackjack-v1", "MiniGrid-Empty-5x5-v0")
LAKE = "gymnasium:FrozenLake-v1(is_slippery=False)"

pytestmark = pytest.mark.timeout(900)


def acts(*actions: Any) -> list[Any]:
    return [["act", {"action": action}] for action in actions]


OTHERS: dict[str, tuple[str, int, list[Any]]] = {
    "lake": (LAKE, 0, acts(1, 1, 2, 1, 2, 2)),
    "hole": (LAKE, 0, acts(1, 2, 0)),
    "cart": ("gymnasium:CartPole-v1(max_episode_steps=4)", 0, acts(0, 1, 0, 1)),
    "walk": (
        "gymnasium:MiniGrid-Empty-5x5-v0",
        0,
        acts("forward", "forward", "right", "forward", "forward"),
    ),
    "illegal": ("gymnasium:CartPole-v1", 0, acts(7, "up", 1)),
    "too far": ("gymnasium:Pendulum-v1", 0, acts(3.5, 1.5)),
    "unknown": ("gymnasium:CartPol-v1", 0, []),
    "no option": ("gymnasium:CartPole-v1(wheels=4)", 0, []),
    "no engine": ("gymnasium:LunarLander-v3", 0, []),
    "no module": ("gymnasium:no_such_module:Lake-v0", 0, []),
}


@pytest.fixture(scope="module")
def all_played(doors_python: str) -> list[dict[str, Any]]:
    """Of each environment random games of the seeds 3, 3 and 4; then the others."""
    jobs = [(f"gymnasium:{one}", seed, None) for one in IDS for seed in (3, 3, 4)]
    return games(doors_python, *jobs, *OTHERS.values())


@pytest.fixture(scope="module")
def others(all_played: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return dict(zip(OTHERS, all_played[3 * len(IDS) :], strict=True))


@pytest.fixture(scope="module")
def whole(all_played: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    return {one: all_played[3 * place : 3 * place + 3] for place, one in enumerate(IDS)}


@pytest.mark.parametrize("one", IDS)
def test_an_episode_is_played_to_its_end_and_a_seed_repeats_it(one: str, whole: Any):
    first, again, other = whole[one]
    assert first["error"] is None
    assert first["outcome"] == "stopped_by_environment"
    assert "The episode is over." in first["texts"][-1] or "broken off" in first["texts"][-1]
    assert f"All rewards: {first['reward']:g}." in first["texts"][-1]
    assert again == first
    assert other["texts"] != first["texts"]


def test_what_is_shown_can_be_read(whole: Any):
    shown = {one: played[0]["observation"] for one, played in whole.items()}
    assert "Push cart to the left" in shown["CartPole-v1"]
    assert shown["CartPole-v1"].splitlines()[-1].startswith("Observation: [")
    assert shown["FrozenLake-v1"].endswith("[S]FFF\nFHFH\nFFFH\nHFFG\nObservation: 0")
    assert ":magenta]" in shown["Taxi-v4"]
    assert "Mission: get to the green goal square\nYou face east." in shown["MiniGrid-Empty-5x5-v0"]
    assert "You see: goal 2 ahead and 2 to the right." in shown["MiniGrid-Empty-5x5-v0"]
    assert not any("\x1b" in text for text in shown.values())


def test_actions_have_names_or_numbers(whole: Any):
    def choices(one: str) -> Any:
        (tool,) = whole[one][0]["tools"]
        return tool["function"]["parameters"]["properties"]["action"]["enum"]

    assert choices("Taxi-v4") == [0, 1, 2, 3, 4, 5]
    assert choices("MiniGrid-Empty-5x5-v0")[:3] == ["left", "right", "forward"]


def test_ends_are_told_apart(others: Any):
    lake, hole, cart, walk = (others[one] for one in ("lake", "hole", "cart", "walk"))
    assert (lake["won"], lake["reward"]) == (True, 1.0)
    assert (hole["won"], len(hole["texts"])) == (False, 2)
    assert "The episode is over." in hole["texts"][-1]
    assert (cart["won"], cart["reward"]) == (False, 4.0)
    assert "broken off after its longest time" in cart["texts"][-1]
    assert walk["won"]
    assert walk["reward"] == pytest.approx(1 - 0.9 * 5 / 100)


def test_what_is_illegal_is_refused(others: Any):
    choice, torque = others["illegal"], others["too far"]
    assert choice["errors"] == [True, True, False]
    assert "one of 0, 1" in choice["texts"][0]
    assert torque["errors"] == [True, False]
    assert "action=3.5: must be from -2 to 2." in torque["texts"][0]
    assert torque["metrics"]["illegal_actions"] == 1


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("unknown", "CartPole"),
        ("no option", "wheels"),
        ("no engine", "Box2D"),
        ("no module", "no_such_module"),
    ],
)
def test_what_cannot_be_played_is_told(name: str, word: str, others: Any):
    assert word in others[name]["refused"]


def test_it_is_served_where_the_package_is_not_here(doors_home: Any):
    world = find_environment(LAKE)
    row = {"prompt": "Go.", "seed": 1}
    game = play_scripted(world, calling(acts(1, 1, 9, 2, 1, 2, 2)), row, 1)
    assert (game.is_win, game.reward, game.metrics["steps"]) == (True, 1.0, 6.0)
    assert [turn.is_error for turn in game.turns] == [
        False,
        False,
        True,
        False,
        False,
        False,
        False,
    ]
    random_game = play_scripted(world, world.policy("random"), row, 1)
    assert random_game.error is None
