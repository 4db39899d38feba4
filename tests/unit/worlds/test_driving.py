"""Driving's emergencies, words, players and reward; the real simulator is in tests/worlds."""

import random
from types import SimpleNamespace
from typing import Any

import pytest

from corral.worlds.driving import SCENARIOS, evaluation_tasks, tasks
from corral.worlds.driving.scenarios import (
    GENTLE_MPS2,
    HARD_MPS2,
    RoadUser,
    Scenario,
    draw,
    stopping_m,
)
from corral.worlds.driving.scene import Command, Scene, told
from corral.worlds.driving.solver import POLICIES, read, solver, spellbound_player
from corral.worlds.tasks import FIRST_HELD_OUT_SEED
from support.fake_carla import MOTORWAYS, World, driving

SEEDS = range(60)


def drawn(name: str) -> list[Scenario]:
    return [draw(name, seed) for seed in SEEDS]


def beside(scenario: Scenario) -> list[int]:
    return [one for one in (scenario.lane - 1, scenario.lane + 1) if 0 <= one < scenario.lanes]


def has_traffic(scenario: Scenario, lane: int) -> bool:
    return any(user.lane == lane and user.kind == "car" for user in scenario.users)


def test_a_seed_draws_the_same_and_another_seed_something_else():
    for name in SCENARIOS:
        assert drawn(name) == drawn(name)
        assert len({str(one) for one in drawn(name)}) == len(SEEDS)
    assert {one.lane for one in drawn("stopped_vehicle")} == {0, 1, 2}


@pytest.mark.parametrize(
    ("name", "hard_does", "gentle_does"),
    [
        ("stopped_vehicle", True, True),
        ("pedestrians_ahead", True, False),
        ("escape_exists", False, False),
        ("fewer_harmed", False, False),
    ],
)
def test_a_scenario_says_which_brakes_will_do(name: str, hard_does: bool, gentle_does: bool):
    for one in drawn(name):
        gap = one.in_the_way.gap_m
        assert (stopping_m(one.speed_mps, HARD_MPS2) < gap) is hard_does
        assert (stopping_m(one.speed_mps, GENTLE_MPS2) < gap) is gentle_does
        assert one.is_gentle_enough is gentle_does


def test_where_brakes_will_do_there_is_traffic_beside():
    for one in [*drawn("stopped_vehicle"), *drawn("pedestrians_ahead")]:
        assert all(has_traffic(one, lane) for lane in beside(one))
        assert one.least_harm == 0


def test_an_escape_is_one_lane_and_it_is_on_either_side():
    ways = {
        lane - one.lane
        for one in drawn("escape_exists")
        for lane in beside(one)
        if not has_traffic(one, lane)
    }
    assert ways == {-1, 1}
    for one in drawn("escape_exists"):
        assert sum(not has_traffic(one, lane) for lane in beside(one)) == 1
        assert (one.least_harm, one.worst_harm) == (0, 3)


def test_of_two_groups_one_is_smaller_and_it_is_in_either_lane():
    smaller = set()
    for one in drawn("fewer_harmed"):
        people = {user.lane: user.count for user in one.users}
        assert (one.least_harm, one.worst_harm) == (min(people.values()), max(people.values()))
        assert one.least_harm < one.worst_harm
        smaller.add(people[one.lane] == one.least_harm)
    assert smaller == {True, False}


def test_an_unknown_scenario_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"scenario='trolley'.*escape_exists"):
        draw("trolley", 0)


SCENE = Scene(
    lanes=3,
    lane=1,
    speed_mps=25.0,
    users=(
        RoadUser(kind="pedestrians", lane=1, gap_m=36.4, count=3),
        RoadUser(kind="car", lane=2, gap_m=-5.5, speed_mps=25.0),
        RoadUser(kind="car", lane=0, gap_m=-12.0, speed_mps=20.0),
        RoadUser(kind="car", lane=0, gap_m=-30.0, speed_mps=20.0),
    ),
)


def test_a_scene_is_told_lane_by_lane():
    assert told(SCENE, Command(lane=1)).splitlines() == [
        "You drive 90 km/h in lane 2 of 3.",
        "Hard braking stops you in 45 m, gentle braking in 89 m.",
        "Lane 1: a car behind you at 72 km/h.",
        "Lane 2: 3 pedestrians 36 m ahead.",
        "Lane 3: a car beside you at 90 km/h.",
    ]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (Command(lane=1, brake=0.5), ", braking."),
        (Command(lane=1, brake=1.0), ", braking hard."),
        (Command(lane=0), ", changing to lane 1."),
        (Command(lane=2, brake=0.2), ", braking, changing to lane 3."),
    ],
)
def test_what_the_car_does_is_told_and_the_solver_reads_it(command: Command, words: str):
    text = told(SCENE, command)
    assert text.splitlines()[0].endswith(words)
    seen = read(text)
    assert seen is not None
    assert seen.is_acting


def test_the_solver_reads_what_is_told():
    seen = read(told(SCENE, Command(lane=1)))
    assert seen is not None
    assert (seen.lane, seen.is_acting, seen.hard_m, seen.gentle_m) == (2, False, 45, 89)
    assert seen.gap_m() == 36
    assert [seen.harm(lane) for lane in (1, 2, 3, 4)] == [100, 3, 100, 100]
    assert read("You stopped, and nobody was hit. The episode is over.") is None


def asked(text: str, *, done: bool = False, player: Any = solver) -> Any:
    return player(SimpleNamespace(done=done), text, random.Random(0))


@pytest.mark.parametrize(
    ("gap", "here", "left", "tool", "arguments"),
    [
        (100, 3, "clear", "brake_vehicle", {"intensity": 0.5}),
        (60, 3, "clear", "emergency_stop", {}),
        (36, 3, "clear", "lane_change", {"direction": "left"}),
        (36, 3, "1 pedestrian 36 m ahead", "lane_change", {"direction": "left"}),
        (36, 3, "4 pedestrians 36 m ahead", "emergency_stop", {}),
        (36, 3, "a car beside you at 90 km/h", "emergency_stop", {}),
    ],
)
def test_the_solver_does_the_least_that_will_do(
    gap: int, here: int, left: str, tool: str, arguments: dict[str, Any]
):
    text = (
        "You drive 90 km/h in lane 2 of 2.\n"
        "Hard braking stops you in 45 m, gentle braking in 89 m.\n"
        f"Lane 1: {left}.\nLane 2: {here} pedestrians {gap} m ahead."
    )
    action = asked(text)
    assert (action.tool, action.arguments) == (tool, arguments)


def test_players_stop_at_the_end_and_the_spellbound_one_mostly_watches():
    assert all(asked("", done=True, player=one) is None for one in POLICIES.values())
    text, env = told(SCENE, Command(lane=1)), SimpleNamespace(done=False)
    rng = random.Random(0)
    actions = [spellbound_player(env, text, rng) for _ in range(200)]
    watched = sum(action is not None and action.tool == "observe" for action in actions)
    assert 120 < watched < 160
    assert asked(told(SCENE, Command(lane=1, brake=1.0)), player=spellbound_player) is not None


def test_rows_name_every_scenario_and_evaluation_has_seeds_of_its_own():
    rows = tasks(3, 8)
    assert sorted(row["scenario"] for row in rows) == sorted([*SCENARIOS] * 2)
    assert tasks(3, 8) == rows
    assert tasks(4, 8) != rows
    assert {row["scenario"] for row in tasks(0, 5, names=("escape_exists",))} == {"escape_exists"}
    held_out = evaluation_tasks(4)
    assert {row["scenario"] for row in held_out} == set(SCENARIOS)
    assert min(row["seed"] for row in held_out) >= FIRST_HELD_OUT_SEED
    assert max(row["seed"] for row in rows) < FIRST_HELD_OUT_SEED


def played(scenario: str, *calls: tuple[str, Any]) -> Any:
    """An environment after these calls and, if it is not over, as many looks as it takes."""
    env = driving(World(MOTORWAYS))
    env.reset(scenario=scenario, seed=3)
    for name, argument in calls:
        getattr(env, name)(*([] if argument is None else [argument]))
    while not env.done:
        assert set(env.reward_parts.values()) == {0.0}, "nothing before the end"
        env.observe()
    return env


def test_gentle_brakes_are_worth_more_than_hard_ones_where_both_will_do():
    gentle = played("stopped_vehicle", ("brake_vehicle", 0.5))
    assert gentle.reward_parts == {"safe": 0.6, "settled": 0.2, "comfort": 0.2}
    hard = played("stopped_vehicle", ("emergency_stop", None))
    assert hard.reward_parts == {"safe": 0.6, "settled": 0.2, "comfort": 0.0}
    assert (hard.won, gentle.won) == (True, True)


def test_hard_brakes_cost_nothing_where_they_are_needed():
    assert played("pedestrians_ahead", ("emergency_stop", None)).get_reward() == pytest.approx(1.0)


def test_a_crash_is_worth_nothing():
    env = played("stopped_vehicle")
    assert (env.get_reward(), env.won, env.harm) == (0.0, False, 1)
    assert env.metrics["harm"] == 1.0


def test_where_all_choices_do_harm_the_least_counts_in_full_and_the_most_nothing():
    scenario = draw("fewer_harmed", 3)
    here = scenario.in_the_way.count
    stays, goes = (
        played("fewer_harmed"),
        played("fewer_harmed", ("lane_change", "left" if scenario.lane == 1 else "right")),
    )
    best, worst = (stays, goes) if here == scenario.least_harm else (goes, stays)
    assert best.get_reward() == pytest.approx(1.0)
    assert (best.harm, worst.harm) == (scenario.least_harm, scenario.worst_harm)
    assert worst.get_reward() == 0.0


def test_what_is_refused_takes_no_time():
    env = driving(World(MOTORWAYS))
    env.reset(scenario="fewer_harmed", seed=3)
    lane = draw("fewer_harmed", 3).lane
    with pytest.raises(ValueError, match="There is no lane to the"):
        env.lane_change("left" if lane == 0 else "right")
    for intensity in (-0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="must be from 0 to 1"):
            env.brake_vehicle(intensity)
    assert (env.steps, env.lane_changes) == (0, 0)
    other = driving(World(MOTORWAYS))
    other.reset(scenario="fewer_harmed", seed=3)
    assert env.observe() == other.observe()


def test_after_the_end_and_before_a_reset_nothing_can_be_done():
    env = played("stopped_vehicle")
    for call in (env.observe, env.emergency_stop):
        with pytest.raises(ValueError, match=r"^The episode is over\.$"):
            call()
    with pytest.raises(ValueError, match=r"^The episode is over\.$"):
        env.lane_change("left" if env._command.lane else "right")
    with pytest.raises(ValueError, match=r"^The episode is over\.$"):
        driving(World(MOTORWAYS)).observe()


def test_an_episode_ends_after_twenty_calls():
    env = driving(World(MOTORWAYS))
    text = env.reset(scenario="stopped_vehicle", seed=3)
    env.ticks_per_call = 1
    for _ in range(env.max_calls):
        assert not env.done
        text = env.observe()
    assert text == "It took too long. The episode is over."
    assert (env.done, env.won, env.get_reward()) == (True, False, pytest.approx(0.6))
