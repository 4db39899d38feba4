"""Environments of OpenReward, at the server that the package brings."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.serve.ports import free_port
from corral.worlds.tasks import FIRST_HELD_OUT_SEED
from support.doors import games
from support.process_table import wait_until
from support.served_command import is_healthy

PROGRAM = str(Path(__file__).parents[1] / "support" / "openreward_kitchen.py")
KITCHEN = f"openreward:{PROGRAM}:Kitchen"
QUIZ = f"openreward:{PROGRAM}:Quiz"

JOBS: dict[str, tuple[str, int, list[Any] | None]] = {
    "cooked": (KITCHEN, 0, [["cook", {"dish": "soup"}], ["cook", {}], ["look", {}], ["serve", {}]]),
    "held out": (KITCHEN, FIRST_HELD_OUT_SEED, [["serve", {}], ["serve", {}]]),
    "another split": (f"{KITCHEN}(split='test')", 0, [["cook", {"dish": "cake", "heat": "high"}]]),
    "broken": (KITCHEN, 1, [["fail", {"how": "raise"}], ["serve", {}]]),
    "a message": (QUIZ, 0, [["hint", {}], ["reply", {"text": "2"}]]),
    "by chance": (QUIZ, 5, None),
    "no split": (f"{KITCHEN}(split='none')", 0, []),
    "no class": (f"openreward:{PROGRAM}:Cellar", 0, []),
    "no server": ("openreward:cellar(url='http://127.0.0.1:9', timeout_s=2)", 0, []),
}

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def url(doors_python: str) -> Iterator[str]:
    """A server in a process of its own."""
    address = f"http://127.0.0.1:{(port := free_port())}"
    process = subprocess.Popen([doors_python, PROGRAM, str(port)], stdout=subprocess.DEVNULL)
    try:
        assert wait_until(lambda: is_healthy(address), within_s=120)
        yield address
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def played(doors_python: str, url: str) -> dict[str, dict[str, Any]]:
    kitchen = f"openreward:kitchen(url={url!r}, timeout_s=5)"
    jobs = {
        **JOBS,
        "at a url": (kitchen, 2, [["cook", {"dish": "jam"}], ["serve", {}]]),
        "gone": (kitchen, 0, [["fail", {"how": "exit"}]]),
    }
    return dict(zip(jobs, games(doors_python, *jobs.values()), strict=True))


def test_rewards_add_up_and_a_tool_ends_the_episode(played: Any):
    game = played["cooked"]
    assert (game["error"], game["observation"]) == (None, "Cook soup.")
    cooked, refused, looked, served = game["texts"]
    assert cooked == "soup on low heat"
    assert "dish" in refused
    assert looked[0] == {"type": "text", "text": "A table:"}
    assert looked[1]["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    assert served == "Served."
    assert game["errors"] == [False, True, False, False]
    assert (game["outcome"], game["reward"], game["won"]) == ("stopped_by_environment", 1.0, True)


def test_tools_keep_their_schema(played: Any):
    tools = {tool["function"]["name"]: tool["function"] for tool in played["cooked"]["tools"]}
    assert set(tools) == {"cook", "serve", "look", "fail"}
    assert tools["cook"]["description"] == "Cook a dish."
    assert tools["cook"]["parameters"]["required"] == ["dish"]
    assert tools["cook"]["parameters"]["properties"]["heat"]["enum"] == ["low", "high"]


def test_evaluations_have_tasks_of_their_own_and_splits_can_be_named(played: Any):
    assert played["held out"]["observation"] == "Cook jam."
    assert (played["held out"]["reward"], len(played["held out"]["texts"])) == (0.25, 1)
    other = played["another split"]
    assert (other["observation"], other["texts"]) == ("Cook cake.", ["cake on high heat"])
    assert (other["outcome"], other["reward"]) == ("finished", 0.75)


def test_a_server_may_be_elsewhere(played: Any):
    assert (played["at a url"]["error"], played["at a url"]["reward"]) == (None, 0.25)


def test_a_message_stands_for_the_terminal_tool_and_tools_may_be_the_tasks(played: Any):
    game = played["a message"]
    assert {tool["function"]["name"] for tool in game["tools"]} == {"hint", "reply"}
    assert game["texts"] == ["Fewer than 3.", "Right."]
    assert (game["outcome"], game["won"]) == ("stopped_by_environment", True)
    assert played["by chance"]["error"] is None


def test_a_tool_that_raises_is_the_environments_fault(played: Any):
    game = played["broken"]
    assert game["outcome"] == "environment_fault"
    assert "The oven is broken." in game["error"]


def test_a_server_that_is_gone_is_an_infrastructure_fault(played: Any):
    assert played["gone"]["outcome"] == "infrastructure_fault"
    assert "kitchen" in played["gone"]["error"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no split", "splits train, test"),
        ("no class", "'Cellar' does not exist"),
        ("no server", "cellar"),
    ],
)
def test_what_cannot_be_played_is_told(name: str, words: str, played: Any):
    assert words in played[name]["refused"]
