"""Environments of verifiers, run and scored by the real package: a shop of our own, and a game.

They share one process, since the package takes seconds to import; so does each server of tools.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from corral.worlds.tasks import FIRST_HELD_OUT_SEED
from support.doors import games
from support.once import made_once

SHOP = f"verifiers:{Path(__file__).parents[1] / 'support' / 'verifiers_shop.py'}"
WORDLE = "verifiers:textarena(game='Wordle-v0')"


def say(text: str) -> list[Any]:
    return ["reply", {"text": text}]


def ask(item: str, **more: Any) -> list[Any]:
    return ["shop_price", {"item": item, **more}]


JOBS: dict[str, tuple[str, int, list[Any] | None]] = {
    "bought": (SHOP, 0, [ask("tea", pieces=2), ask("beer"), ["shop_picture", {}], say("3")]),
    "left": (SHOP, FIRST_HELD_OUT_SEED, [ask("soap")]),
    "broken": (SHOP, 1, [say("break")]),
    "wordle": (WORDLE, 3, [say(f"[{word}]") for word in ("crane", "zzzzz", "horse")]),
    "by chance": (WORDLE, 4, None),
    "unknown": ("verifiers:no_such_tasks", 0, []),
    "no file": ("verifiers:no_such_tasks.py", 0, []),
    "wrong setting": ("verifiers:textarena(game='Chess')", 0, []),
    "two agents": (f"{SHOP}(env={{'id': 'user-sim'}})", 0, []),
}

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def played(
    verifiers_python: str, tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> dict[str, dict[str, Any]]:
    def play(path: Path) -> None:
        came = games(verifiers_python, *JOBS.values())
        path.write_text(json.dumps(came), encoding="utf-8")

    path = made_once(tmp_path_factory, worker_id, "verifiers.json", play)
    return dict(zip(JOBS, json.loads(path.read_text(encoding="utf-8")), strict=True))


def test_an_episode_with_tools_has_the_rewards_of_the_taskset(played: Any):
    game = played["bought"]
    assert (game["error"], game["outcome"]) == (None, "stopped_by_environment")
    assert game["observation"] == "Good morning.\n\nWhat does tea cost?"
    price, unknown, picture, last = game["texts"]
    assert price == "2 tea: 6"
    assert "beer" in unknown
    assert picture[0]["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    assert last == "The episode is over. Its reward is 1."
    assert (game["reward"], game["won"]) == (1.0, True)
    assert game["metrics"] == {
        "win": 1.0,
        "turns": 4.0,
        "questions": 1.0,
        "reward/right": 0.75,
        "reward/has_asked": 0.25,
    }


def test_tools_keep_their_schema_and_a_message_is_one(played: Any):
    tools = {tool["function"]["name"]: tool["function"] for tool in played["bought"]["tools"]}
    assert set(tools) == {"reply", "shop_price", "shop_picture"}
    parameters = tools["shop_price"]["parameters"]
    assert parameters["required"] == ["item"]
    assert parameters["properties"]["pieces"]["type"] == "integer"
    assert parameters["properties"]["item"]["description"] == "What is to be bought."


def test_a_model_that_stops_early_is_scored_and_evaluations_have_tasks_of_their_own(played: Any):
    game = played["left"]
    assert game["observation"].endswith("What does soap cost?")
    assert (game["outcome"], game["reward"], game["won"]) == ("finished", 0.25, False)


def test_a_reward_that_fails_is_the_environments_fault(played: Any):
    game = played["broken"]
    assert game["outcome"] == "environment_fault"
    assert "the till is broken" in game["error"]


def test_a_user_that_the_environment_plays_is_answered(played: Any):
    game = played["wordle"]
    assert game["error"] is None
    assert "You are Playing Wordle" in game["observation"]
    assert "X Y X X G" in game["texts"][0]
    assert "'zzzzz' is not an English word" in game["texts"][1]
    assert (game["reward"], game["won"]) == (1.0, True)
    assert game["metrics"]["reward/game_reward"] == 1.0


def test_random_play_loses(played: Any):
    game = played["by chance"]
    assert (game["error"], game["outcome"]) == (None, "stopped_by_environment")
    assert game["reward"] < 1.0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("unknown", "cannot find 'no_such_tasks'"),
        ("no file", "no file 'no_such_tasks.py'"),
        ("wrong setting", "Wordle-v0"),
        ("two agents", "agents without a model: assistant, user"),
    ],
)
def test_what_cannot_be_played_is_told(name: str, words: str, played: Any):
    assert words in played[name]["refused"]
