import asyncio
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from corral.env import prepare
from corral.errors import UsageError
from corral.records import Outcome
from corral.worlds import WORLDS, PolicyAction, World, world_of
from corral.worlds.play import (
    PlayedGame,
    demonstration,
    play_episodes,
    play_scripted,
    play_together,
    summary,
)
from corral.worlds.wordle.solver import what_is_known
from support.worlds_here import WORLDS_HERE


def played(name: str, policy: str, seed: int = 0) -> PlayedGame:
    world = WORLDS[name]
    (row,) = world.tasks(seed, 1)
    return play_scripted(world, world.policy(policy), row, seed)


def calls(game: PlayedGame) -> list[PolicyAction]:
    return [turn.action for turn in game.turns]


def say(*messages: Any) -> Callable[..., PolicyAction | None]:
    """A player that passes ``messages`` to the tool ``tell``, one after another."""
    left = list(messages)

    def play(env: Any, last_text: str, rng: random.Random) -> PolicyAction | None:
        return PolicyAction(tool="tell", arguments={"message": left.pop(0)}) if left else None

    return play


class Teller:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def reset(self, **kwargs: Any) -> str:
        return "Speak."

    def tell(self, message: str) -> str:
        """Tell something.

        Args:
            message: What to tell.
        """
        if message == "bad":
            raise ValueError("Mind your language.")
        self.heard.append(message)
        return f"heard {message}"


class SlowTeller(Teller):
    async def tell(self, message: str) -> str:  # type: ignore[override]
        """Tell something.

        Args:
            message: What to tell.
        """
        await asyncio.sleep(0)
        return f"heard {message} at last"

    async def get_reward(self) -> float:
        return 0.5


class BrokenTeller(Teller):
    def reset(self, **kwargs: Any) -> str:
        raise KeyError("no such story")


class OfflineTeller(Teller):
    def tell(self, message: str) -> str:
        """Tell something.

        Args:
            message: What to tell.
        """
        raise ConnectionError("line is dead")


def teller_world(kind: type = Teller) -> World:
    return world_of(kind, name="teller")


@pytest.mark.parametrize("name", WORLDS_HERE)
@pytest.mark.parametrize("policy", ["random", "solver"])
def test_the_seed_decides_the_game(name: str, policy: str):
    assert calls(played(name, policy, seed=5)) == calls(played(name, policy, seed=5))
    several = {str(calls(played(name, "random", seed=seed))) for seed in range(4)}
    assert len(several) > 1


@pytest.mark.parametrize("name", WORLDS_HERE)
def test_the_solver_wins_every_world(name: str):
    games = [played(name, "solver", seed) for seed in range(5)]
    assert all(game.is_win for game in games)
    assert all(game.reward is not None and game.reward > 0.7 for game in games)


def test_playing_leaves_process_wide_generators_alone():
    random.seed(1)
    before = random.getstate()
    played("wordle", "solver")
    assert random.getstate() == before


def test_a_player_does_not_draw_what_the_tasks_of_its_seed_drew():
    world = WORLDS["guess_number"]
    games = play_episodes(world, world.policy("random"), episodes=100, seed=0)
    assert sum(len(game.turns) == 1 for game in games) < 15  # 5 by chance


def test_episodes_have_consecutive_seeds_and_can_be_played_again_alone():
    world = WORLDS["wordle"]
    games = list(play_episodes(world, world.policy("solver"), episodes=3, seed=10))
    assert [game.seed for game in games] == [10, 11, 12]
    (alone,) = play_episodes(world, world.policy("solver"), episodes=1, seed=12)
    assert calls(alone) == calls(games[2])


def test_summary_is_json_with_the_five_facts():
    game = played("wordle", "solver", seed=3)
    assert json.loads(json.dumps(summary(WORLDS["wordle"], game))) == {
        "world": "wordle",
        "seed": 3,
        "outcome": "stopped_by_environment",
        "reward": game.reward,
        "turns": len(game.turns),
        "won": True,
    }


def test_unknown_policy_is_a_usage_error_that_names_the_others():
    with pytest.raises(
        UsageError, match=r"wordle has no policy 'clever'. It has: careless, random, solver"
    ):
        WORLDS["wordle"].policy("clever")


def test_a_player_that_stops_finishes_the_game():
    game = play_scripted(teller_world(), say("a", "b"), {"prompt": "Go. "}, 0)
    assert game.outcome is Outcome.FINISHED
    assert [turn.content for turn in game.turns] == ["heard a", "heard b"]
    assert game.reward is None
    assert game.observation == "Speak."
    assert game.tools[0]["function"]["name"] == "tell"


def test_a_game_that_nobody_ends_is_ended():
    world = teller_world()
    game = play_scripted(world, world.policy("random"), {"prompt": ""}, 0, max_calls=4)
    assert game.outcome is Outcome.OUT_OF_TURNS
    assert len(game.turns) == 4


def test_a_tool_error_is_an_answer_and_the_game_goes_on():
    game = play_scripted(teller_world(), say("bad", "good"), {"prompt": ""}, 0)
    assert [turn.is_error for turn in game.turns] == [True, False]
    assert game.turns[0].content == "{'error': 'Mind your language.'}"


def test_asynchronous_environments_play_too():
    game = play_scripted(teller_world(SlowTeller), say("a"), {"prompt": ""}, 0)
    assert game.turns[0].content == "heard a at last"
    assert game.reward == 0.5


def test_an_error_in_reset_is_an_environment_fault():
    game = play_scripted(teller_world(BrokenTeller), say("a"), {"prompt": ""}, 0)
    assert game.outcome is Outcome.ENVIRONMENT_FAULT
    assert game.reward is None
    assert "no such story" in (game.error or "")
    with pytest.raises(UsageError, match="no such story"):
        demonstration(game)


@pytest.mark.report("P101")
def test_a_dead_line_is_an_infrastructure_fault_and_not_a_reward():
    game = play_scripted(teller_world(OfflineTeller), say("a"), {"prompt": ""}, 0)
    assert game.outcome is Outcome.INFRASTRUCTURE_FAULT
    assert game.reward is None
    assert not game.is_win


def test_a_row_that_reset_does_not_take_is_a_usage_error():
    class Strict(Teller):
        def reset(self, prompt: str) -> None:  # type: ignore[override]
            return None

    with pytest.raises(UsageError, match="color"):
        play_scripted(teller_world(Strict), say("a"), {"prompt": "", "color": 1}, 0)


def test_demonstration_is_the_conversation_of_a_model_that_played():
    row = {"prompt": "Go. "}
    messages = demonstration(play_scripted(teller_world(), say("a"), row, 0))
    assert messages == [
        {"role": "user", "content": "Go. Speak."},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"type": "function", "function": {"name": "tell", "arguments": {"message": "a"}}}
            ],
        },
        {"role": "tool", "name": "tell", "content": "heard a"},
        {"role": "assistant", "content": "Done."},
    ]
    assert row == {"prompt": "Go. "}


def test_demonstration_keeps_a_conversational_prompt_as_it_is():
    row = {"prompt": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ""}]}
    messages = demonstration(play_scripted(teller_world(), say(), row, 0), last_word="")
    assert messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Speak."},
    ]
    assert row["prompt"][1]["content"] == ""


def test_thoughts_are_reasoning_and_can_be_left_out():
    game = played("wordle", "solver")
    spoken = [m for m in demonstration(game) if "tool_calls" in m]
    assert "reasoning_content" not in spoken[0]  # nothing is known before the first answer
    assert spoken[1]["reasoning_content"] == what_is_known(game.env.history[:1])
    silent = demonstration(game, with_thoughts=False)
    assert not any("reasoning_content" in message for message in silent)


def test_games_played_together_are_those_played_one_by_one():
    world = WORLDS["multi_env"]
    rows, seeds = world.tasks(0, 9), list(range(9))
    together = play_together(
        world, world.policy("careless"), rows, seeds, kind=prepare(world.factory)
    )
    alone = [
        play_scripted(world, world.policy("careless"), row, seed)
        for row, seed in zip(rows, seeds, strict=True)
    ]
    assert [game.turns for game in together] == [game.turns for game in alone]
