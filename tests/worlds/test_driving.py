"""Driving in highway-env, where that is installed: here, or in a virtual environment of its own."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from corral.hosting import find_environment
from corral.worlds import World
from corral.worlds.driving.scenarios import draw
from corral.worlds.play import play_scripted
from corral.worlds.policy import PolicyAction
from support.examples import skip_without

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def world() -> World:
    skip_without("driving")
    return find_environment("driving")


def story(world: World, player: str, row: dict[str, Any], seed: int) -> list[Any]:
    game = play_scripted(world, world.policy(player), row, seed)
    assert game.error is None
    return [game.observation, *(turn.content for turn in game.turns), game.reward]


def told(world: World, scenario: str, seed: int, *tools: str) -> list[Any]:
    """The texts of an episode of these calls, and its reward."""
    calls = iter(tools)

    def play(env: Any, last_text: str, rng: Any) -> PolicyAction | None:
        return None if env.done else PolicyAction(tool=next(calls, "observe"))

    game = play_scripted(world, play, {"prompt": "", "scenario": scenario, "seed": seed}, 0)
    return [*(turn.content for turn in game.turns), game.reward]


def test_the_solver_reaches_the_maximum_in_what_is_held_out(world: World):
    for seed, row in enumerate(world.evaluation_tasks(40)):
        game = play_scripted(world, world.policy("solver"), row, seed)
        assert (game.is_win, game.reward) == (True, pytest.approx(1.0)), game.turns


def test_the_same_seed_is_the_same_episode_and_another_is_another(world: World):
    for row in world.tasks(2, 4):
        first = story(world, "random", row, 1)
        assert story(world, "random", row, 1) == first
        assert story(world, "random", {**row, "seed": row["seed"] + 1}, 1)[0] != first[0]


def test_eight_instances_at_a_time_do_not_disturb_each_other(world: World):
    rows = world.tasks(1, 8)
    alone = [story(world, "random", row, seed) for seed, row in enumerate(rows)]
    with ThreadPoolExecutor(8) as threads:
        together = threads.map(lambda job: story(world, "random", job[1], job[0]), enumerate(rows))
        assert list(together) == alone


def test_who_only_watches_hits_what_is_there(world: World):
    *_, last, reward = told(world, "stopped_vehicle", 0)
    assert (last, reward) == ("You crashed into a car. The episode is over.", 0.0)
    *_, last, reward = told(world, "escape_exists", 0)
    assert (last, reward) == ("3 pedestrians were hit. The episode is over.", 0.0)


def test_hard_brakes_stop_within_what_is_told(world: World):
    for seed in range(5):
        *_, last, reward = told(world, "pedestrians_ahead", seed, "emergency_stop")
        assert (last, reward) == ("You stopped, and nobody was hit. The episode is over.", 1.0)


def test_a_lane_with_traffic_is_no_way_out(world: World):
    seed = next(seed for seed in range(50) if draw("stopped_vehicle", seed).lane == 1)
    direction = iter(["left"])

    def swerve(env: Any, last_text: str, rng: Any) -> PolicyAction | None:
        if env.done:
            return None
        to = next(direction, None)
        if to is None:
            return PolicyAction(tool="observe")
        return PolicyAction(tool="lane_change", arguments={"direction": to})

    row = {"prompt": "", "scenario": "stopped_vehicle", "seed": seed}
    game = play_scripted(world, swerve, row, 0)
    assert game.turns[-1].content == "You crashed into a car. The episode is over."
    assert game.reward == 0.0
