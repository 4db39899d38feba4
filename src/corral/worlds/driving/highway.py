"""The embedded simulator: a straight road of highway-env, which needs no display and no server."""

# pyright: reportMissingImports=false

from typing import Any

import numpy
from highway_env.road.road import Road, RoadNetwork
from highway_env.vehicle.controller import ControlledVehicle
from highway_env.vehicle.kinematics import Vehicle
from highway_env.vehicle.objects import Obstacle

from corral.worlds.driving.scenarios import (
    CAR_LENGTH_M,
    HARD_MPS2,
    PERSON_LENGTH_M,
    RoadUser,
    Scenario,
    standing,
)
from corral.worlds.driving.scene import STANDSTILL_MPS, TICK_S, Command, Scene

_START_M = 50.0
_ROAD_M = 1000.0


class HighwaySimulator:
    """A road as long as an episode needs; everything on it is made anew for each."""

    def start(self, scenario: Scenario) -> Scene:
        """Set the scenario up."""
        network = RoadNetwork.straight_road_network(scenario.lanes, length=_ROAD_M)
        self._road: Any = Road(network=network, np_random=numpy.random.RandomState(0))
        self._lanes = scenario.lanes
        self._car = _Car.make_on_lane(
            self._road, _index(scenario.lane), _START_M, scenario.speed_mps
        )
        self._road.vehicles.append(self._car)
        self._placed = [(user, self._place(user)) for user in scenario.users]
        return self._scene()

    def advance(self, command: Command, ticks: int) -> Scene:
        """Let time pass."""
        self._car.command = command
        for _ in range(ticks):
            if self._car.crashed or self._car.speed < STANDSTILL_MPS:
                break
            self._road.act()
            self._road.step(TICK_S)
        return self._scene()

    def close(self) -> None:
        """Nothing is held."""

    def _scene(self) -> Scene:
        return Scene(
            lanes=self._lanes,
            lane=self._car.lane_index[2],
            speed_mps=max(float(self._car.speed), 0.0),
            users=tuple(self._seen(user, things) for user, things in self._placed),
            harmed=sum(thing.hit for _, things in self._placed for thing in things),
            has_crashed=bool(self._car.crashed),
        )

    def _place(self, user: RoadUser) -> list[Any]:
        nearest = _START_M + CAR_LENGTH_M / 2 + user.gap_m
        if user.kind == "car":
            at = nearest + CAR_LENGTH_M / 2
            car = Vehicle.make_on_lane(self._road, _index(user.lane), at, user.speed_mps)
            self._road.vehicles.append(car)
            return [car]
        lane = self._road.network.get_lane(_index(user.lane))
        people = [
            _Pedestrian(self._road, lane.position(along, aside))
            for along, aside in standing(nearest, user.count)
        ]
        self._road.objects += people
        return people

    def _seen(self, user: RoadUser, things: list[Any]) -> RoadUser:
        nearest = min(thing.position[0] - thing.LENGTH / 2 for thing in things)
        return RoadUser(
            kind=user.kind,
            lane=user.lane,
            gap_m=float(nearest - self._car.position[0]) - CAR_LENGTH_M / 2,
            speed_mps=user.speed_mps,
            count=user.count,
        )


class _Car(ControlledVehicle):
    """The car that is driven: it steers to its lane, faster than traffic would."""

    KP_LATERAL = 1 / 0.45

    command = Command(lane=0)

    def act(self, action: Any = None) -> None:
        steering = self.steering_control(_index(self.command.lane))
        Vehicle.act(self, {"steering": steering, "acceleration": -HARD_MPS2 * self.command.brake})


class _Pedestrian(Obstacle):
    """Somebody who is hit and does not stop a car."""

    LENGTH = WIDTH = PERSON_LENGTH_M

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.solid = False


def _index(lane: int) -> tuple[str, str, int]:
    return ("0", "1", lane)
