"""The emergencies on a CARLA server: sets the road up, steers the car, and reads what happened.

Written against the client's API, version 0.9.16.
"""

# pyright: reportMissingImports=false

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from corral.errors import InfrastructureFault
from corral.worlds.driving.carla_road import Stretch, find_stretches
from corral.worlds.driving.scenarios import (
    CAR_LENGTH_M,
    PERSON_LENGTH_M,
    RoadUser,
    Scenario,
    standing,
)
from corral.worlds.driving.scene import STANDSTILL_MPS, TICK_S, Command, Scene

_TIMEOUT_S = 60.0
"""Loading a map takes a while."""
_MAP = "Town04"
"""It has a motorway with several lanes each way."""
_ROAD_M = 250.0
_RUN_UP_TICKS = 20
"""What drives starts so much earlier: the server drops cars on the road, and at rest."""
_LOOKAHEAD_S = 0.5
_TURNING_S = 0.2
"""How fast a wrong heading is mended."""
_SIDEWAYS_MPS2 = 7.0
"""What tyres hold on a dry road."""
_WHEELBASE_M, _FULL_LOCK_RAD = 2.9, math.radians(70)
_CAR, _OTHER_CAR = "vehicle.tesla.model3", "vehicle.audi.a2"
_SENSOR = "sensor.other.collision"


class CarlaSimulator:
    """One server, whose world goes on only when this says so."""

    def __init__(self, client: Any, carla: Any) -> None:
        """
        Args:
            client: A connected ``carla.Client``.
            carla: The module.

        Raises:
            InfrastructureFault: The server does not answer.
        """
        self._carla = carla
        self._actors: list[Any] = []
        with _on_the_server():
            self._world = client.load_world(_MAP)
            self._settings = self._world.get_settings()
            steps = self._world.get_settings()
            steps.synchronous_mode = True
            steps.fixed_delta_seconds = TICK_S
            self._world.apply_settings(steps)
            self._stretches = find_stretches(self._world.get_map(), _ROAD_M)
            self._blueprints = self._world.get_blueprint_library()

    @classmethod
    def connect(cls, host: str, port: int) -> "CarlaSimulator":
        """The simulator on the server at an address."""
        import carla

        client = carla.Client(host, port)
        client.set_timeout(_TIMEOUT_S)
        return cls(client, carla)

    def start(self, scenario: Scenario) -> Scene:
        """Clear the road and set the scenario up.

        Raises:
            InfrastructureFault: The map has no such road, or no room on it.
        """
        with _on_the_server():
            self._clear()
            self._scenario = scenario
            self._stretch = self._stretch_of(scenario.lanes)
            self._hit: dict[int, str] = {}
            self._car = self._spawn_car(_CAR, scenario.lane, 0.0, scenario.speed_mps)
            self._placed = [(user, self._place(user)) for user in scenario.users]
            self._listen()
            for _ in range(_RUN_UP_TICKS):
                self._world.tick()
            return self._scene()

    def advance(self, command: Command, ticks: int) -> Scene:
        """Let time pass."""
        with _on_the_server():
            if command.brake > 0:
                self._car.disable_constant_velocity()
            else:
                self._keep_speed(self._car, self._speed())
            for _ in range(ticks):
                if self._has_crashed() or self._speed() < STANDSTILL_MPS:
                    break
                self._car.apply_control(
                    self._carla.VehicleControl(
                        throttle=0.0, brake=command.brake, steer=self._steering(command.lane)
                    )
                )
                self._world.tick()
            return self._scene()

    def close(self) -> None:
        """Take everything off the road, and leave the server as it was found, if it is there."""
        with suppress(RuntimeError):
            self._clear()
            self._world.apply_settings(self._settings)

    def _scene(self) -> Scene:
        along, across = self._stretch.coordinates(self._car.get_location())
        nose = along + CAR_LENGTH_M / 2
        return Scene(
            lanes=self._scenario.lanes,
            lane=self._stretch.lane_at(across),
            speed_mps=self._speed(),
            users=tuple(self._seen(user, actors, nose) for user, actors in self._placed),
            harmed=sum(kind.startswith("walker.") for kind in self._hit.values()),
            has_crashed=self._has_crashed(),
        )

    def _stretch_of(self, lanes: int) -> Stretch:
        """The first stretch of road that is wide enough."""
        found = next((one for one in self._stretches if one.lanes >= lanes), None)
        if found is None:
            raise InfrastructureFault(f"{_MAP} has no straight road of {lanes} lanes.")
        return found

    def _place(self, user: RoadUser) -> list[Any]:
        nearest = CAR_LENGTH_M / 2 + user.gap_m
        if user.kind == "car":
            middle = nearest + CAR_LENGTH_M / 2
            return [self._spawn_car(_OTHER_CAR, user.lane, middle, user.speed_mps)]
        looks = sorted(one.id for one in self._blueprints.filter("walker.pedestrian.*"))
        rng = random.Random(f"looks {user.gap_m}")
        return [
            self._spawn(rng.choice(looks), self._stretch.place(user.lane, along, aside))
            for along, aside in standing(nearest, user.count)
        ]

    def _spawn_car(self, kind: str, lane: int, along_m: float, speed_mps: float) -> Any:
        """A car that will be at a place when the run-up is over."""
        earlier_m = speed_mps * TICK_S * _RUN_UP_TICKS
        car = self._spawn(kind, self._stretch.place(lane, along_m - earlier_m))
        if speed_mps > 0:
            self._keep_speed(car, speed_mps)
        return car

    def _keep_speed(self, car: Any, speed_mps: float) -> None:
        car.enable_constant_velocity(self._carla.Vector3D(speed_mps, 0.0, 0.0))

    def _spawn(self, kind: str, place: tuple[float, float, float, float]) -> Any:
        x, y, z, yaw = place
        carla = self._carla
        transform = carla.Transform(
            carla.Location(x=x, y=y, z=z + 0.5), carla.Rotation(pitch=0.0, yaw=yaw, roll=0.0)
        )
        actor = self._world.try_spawn_actor(self._blueprints.find(kind), transform)
        if actor is None:
            raise InfrastructureFault(f"CARLA has no room for {kind} at ({x:.0f}, {y:.0f}).")
        self._actors.append(actor)
        return actor

    def _listen(self) -> None:
        sensor = self._world.spawn_actor(
            self._blueprints.find(_SENSOR), self._carla.Transform(), attach_to=self._car
        )
        self._actors.append(sensor)
        hit = self._hit

        def note(event: Any) -> None:  # called in a thread of the client's
            hit[event.other_actor.id] = event.other_actor.type_id

        sensor.listen(note)

    def _has_crashed(self) -> bool:
        return any(kind.startswith("vehicle.") for kind in self._hit.values())

    def _speed(self) -> float:
        velocity = self._car.get_velocity()
        return math.hypot(velocity.x, velocity.y)

    def _steering(self, lane: int) -> float:
        """Towards a point ahead in the middle of the lane, from −1 to 1, as far as tyres hold."""
        transform, speed = self._car.get_transform(), max(self._speed(), 1.0)
        _, across = self._stretch.coordinates(transform.location)
        ahead_m = max(speed * _LOOKAHEAD_S, 5.0)
        wanted = math.atan2(self._stretch.middle(lane) - across, ahead_m)
        turned = math.radians(transform.rotation.yaw - self._stretch.yaw)
        rate = math.remainder(wanted - turned, math.tau) / _TURNING_S
        most = _SIDEWAYS_MPS2 / speed
        rate = max(-most, min(most, rate))
        # A car turns by v / wheelbase · tan(angle of its front wheels).
        return max(-1.0, min(1.0, math.atan(_WHEELBASE_M * rate / speed) / _FULL_LOCK_RAD))

    def _seen(self, user: RoadUser, actors: list[Any], nose: float) -> RoadUser:
        length = CAR_LENGTH_M if user.kind == "car" else PERSON_LENGTH_M
        places = [self._stretch.coordinates(one.get_location())[0] for one in actors]
        return RoadUser(
            kind=user.kind,
            lane=user.lane,
            gap_m=min(places) - length / 2 - nose,
            speed_mps=user.speed_mps,
            count=user.count,
        )

    def _clear(self) -> None:
        for actor in reversed(self._actors):  # the sensor before the car that it is on
            if actor.type_id == _SENSOR:
                actor.stop()
            actor.destroy()
        self._actors.clear()


@contextmanager
def _on_the_server() -> Iterator[None]:
    """What the client raises of its server (``RuntimeError``) is nobody's fault here."""
    try:
        yield
    except RuntimeError as error:
        raise InfrastructureFault(f"CARLA failed: {error}") from error
