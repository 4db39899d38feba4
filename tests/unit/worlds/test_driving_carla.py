"""The emergencies on a CARLA server, of which only a fake one is at hand."""

import random
import socket
from typing import Any

import pytest

from corral.errors import InfrastructureFault, UsageError
from corral.worlds.driving import SCENARIOS
from corral.worlds.driving.address import carla_address, carla_problem
from corral.worlds.driving.carla_road import find_stretches
from corral.worlds.driving.solver import solver
from support.fake_carla import CARLA, MOTORWAYS, Road, World, driving

ROADS = (
    Road(x=0.0, y=0.0, yaw=0.0, lanes=4, turns_deg_per_m=0.1),
    Road(x=0.0, y=500.0, yaw=0.0, lanes=4, narrows_after_m=100.0),
    Road(x=0.0, y=900.0, yaw=180.0, lanes=2),
    *MOTORWAYS,
)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_solver_reaches_the_maximum_there_too(scenario: str):
    env = driving(World(ROADS))
    for seed in range(4):
        text = env.reset(scenario=scenario, seed=seed)
        while (action := solver(env, text, random.Random(0))) is not None:
            text = getattr(env, action.tool)(**action.arguments)
        assert env.get_reward() == pytest.approx(1.0), (seed, text)


def test_it_is_told_as_in_the_embedded_simulator():
    env = driving(World(ROADS))
    first = env.reset(scenario="escape_exists", seed=3)
    assert first.splitlines()[0].startswith("You drive ")
    assert "3 pedestrians" in first
    later = env.observe()
    assert later.count("Lane ") == first.count("Lane ") == 3


def test_everybody_who_is_hit_counts_once():
    env = driving(World(ROADS))
    text = env.reset(scenario="escape_exists", seed=3)
    while not env.done:
        text = env.observe()
    assert text == "3 pedestrians were hit. The episode is over."
    assert (env.harm, env.won, env.get_reward()) == (3, False, 0.0)


def test_a_car_that_is_run_into_ends_it():
    env = driving(World(ROADS))
    text = env.reset(scenario="stopped_vehicle", seed=0)
    while not env.done:
        text = env.observe()
    assert text == "You crashed into a car. The episode is over."
    assert env.get_reward() == 0.0


def test_nothing_is_left_on_the_road_and_the_server_runs_on_by_itself():
    world = World(ROADS)
    env = driving(world)
    env.reset(scenario="escape_exists", seed=1)
    before = len(world.actors)
    env.reset(scenario="escape_exists", seed=1)
    assert len(world.actors) == before
    assert world.settings.synchronous_mode
    env.close()
    assert world.actors == []
    assert not world.settings.synchronous_mode


def test_a_server_that_fails_is_an_infrastructure_fault():
    world = World(ROADS)
    env = driving(world)
    env.reset(scenario="stopped_vehicle", seed=0)
    world.is_gone = True
    with pytest.raises(InfrastructureFault, match="CARLA failed: time-out"):
        env.observe()


def test_a_map_without_a_wide_straight_road_is_told():
    env = driving(World(ROADS[:3]))
    with pytest.raises(InfrastructureFault, match="no straight road of 3 lanes"):
        env.reset(scenario="stopped_vehicle", seed=0)


def test_a_stretch_is_straight_and_keeps_its_lanes():
    narrow, wide = find_stretches(World(ROADS).get_map(), 250.0)
    assert (narrow.lanes, wide.lanes) == (2, 4)
    assert (wide.x, wide.y, wide.yaw) == (-300.0, 40.0, 90.0)
    x, y, _, yaw = wide.place(2, 30.0, 0.5)
    assert (x, y, yaw) == pytest.approx((-307.5, 70.0, 90.0)), "right of who goes along y is -x"
    along, across = wide.coordinates(CARLA.Location(x, y, 0.0))
    assert (along, across) == pytest.approx((30.0, 7.5))
    assert wide.lane_at(across) == 2


@pytest.mark.parametrize(
    ("named", "address"), [("", ("127.0.0.1", 2000)), ("carla.local:2002", ("carla.local", 2002))]
)
def test_the_server_is_where_the_variable_says(named: str, address: Any, monkeypatch: Any):
    monkeypatch.setenv("CORRAL_CARLA", named)
    assert carla_address() == address


def test_an_address_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CORRAL_CARLA", "2000")
    with pytest.raises(UsageError, match="HOST:PORT"):
        carla_address()


def test_a_server_that_is_not_there_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listened on
        port = taken.getsockname()[1]
        monkeypatch.setenv("CORRAL_CARLA", f"127.0.0.1:{port}")
        problem = carla_problem()
    assert problem is not None
    assert f"127.0.0.1:{port}" in problem
    assert "CORRAL_CARLA" in problem
