"""A CARLA client and its server, as far as the world ``driving`` calls them: cars on flat roads."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from types import SimpleNamespace
from typing import Any

from corral.worlds.driving import DrivingInCarla
from corral.worlds.driving.carla_server import CarlaSimulator

BRAKES_MPS2 = 8.0
SIZES = {"vehicle": (5.0, 2.0), "walker": (0.6, 0.6)}
_KINDS = (
    "vehicle.tesla.model3",
    "vehicle.audi.a2",
    "walker.pedestrian.0001",
    "walker.pedestrian.0002",
    "sensor.other.collision",
)


@dataclass
class Location:
    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


@dataclass
class Rotation:
    pitch: float = 0.0
    yaw: float = 0.0
    roll: float = 0.0


@dataclass
class Transform:
    location: Location = field(default_factory=Location)
    rotation: Rotation = field(default_factory=Rotation)


@dataclass
class VehicleControl:
    throttle: float = 0.0
    steer: float = 0.0
    brake: float = 0.0


@dataclass(frozen=True)
class Road:
    """Lanes side by side from a place on; it may bend, and lose its right lane after a while."""

    x: float
    y: float
    yaw: float
    lanes: int
    turns_deg_per_m: float = 0.0
    narrows_after_m: float = math.inf


@dataclass(frozen=True)
class Waypoint:
    road: Road
    lane: int
    along: float

    lane_width = 3.5
    lane_type = "Driving"

    @property
    def lane_id(self) -> int:
        """Of lanes that lead along the road -1, -2, ... from the left."""
        return -(self.lane + 1)

    @property
    def transform(self) -> Transform:
        angle = math.radians(self.road.yaw)
        across = self.lane * self.lane_width
        return Transform(
            Location(
                self.road.x + self.along * math.cos(angle) - across * math.sin(angle),
                self.road.y + self.along * math.sin(angle) + across * math.cos(angle),
            ),
            Rotation(yaw=self.road.yaw + self.along * self.road.turns_deg_per_m),
        )

    def next(self, distance: float) -> "list[Waypoint]":
        return [Waypoint(self.road, self.lane, self.along + distance)]

    def previous(self, distance: float) -> "list[Waypoint]":
        return self.next(-distance)

    def get_left_lane(self) -> Any:
        if self.lane == 0:
            return SimpleNamespace(lane_type="Driving", lane_id=1)  # that of who comes towards us
        return Waypoint(self.road, self.lane - 1, self.along)

    def get_right_lane(self) -> Any:
        lanes = self.road.lanes - (self.along > self.road.narrows_after_m)
        if self.lane + 1 >= lanes:
            return SimpleNamespace(lane_type="Shoulder", lane_id=self.lane_id - 1)
        return Waypoint(self.road, self.lane + 1, self.along)


class Actor:
    """A car, a pedestrian or a sensor."""

    def __init__(self, world: "World", number: int, kind: str, at: Transform) -> None:
        self.id, self.type_id = number, kind
        self._world, self._at = world, Transform(Location(**vars(at.location)), at.rotation)
        self._yaw, self._speed, self._kept = at.rotation.yaw, 0.0, None
        self._control = VehicleControl()
        self.callback: Callable[[Any], None] | None = None
        self.attached_to: Actor | None = None

    def get_location(self) -> Location:
        return self._at.location

    def get_transform(self) -> Transform:
        return Transform(self._at.location, Rotation(yaw=self._yaw))

    def get_velocity(self) -> Any:
        angle = math.radians(self._yaw)
        return SimpleNamespace(x=self._speed * math.cos(angle), y=self._speed * math.sin(angle))

    def enable_constant_velocity(self, velocity: Any) -> None:
        self._kept = velocity.x

    def disable_constant_velocity(self) -> None:
        self._kept = None

    def apply_control(self, control: VehicleControl) -> None:
        self._control = control

    def listen(self, callback: Callable[[Any], None]) -> None:
        self.callback = callback

    def stop(self) -> None:
        self.callback = None

    def destroy(self) -> None:
        self._world.actors.remove(self)

    def move(self, seconds: float) -> None:
        """A bicycle model, and brakes."""
        slower = self._speed - BRAKES_MPS2 * self._control.brake * seconds
        self._speed = max(slower, 0.0) if self._kept is None else self._kept
        wheels = self._control.steer * math.radians(70)
        self._yaw += math.degrees(self._speed / 2.9 * math.tan(wheels) * seconds)
        velocity = self.get_velocity()
        self._at.location.x += velocity.x * seconds
        self._at.location.y += velocity.y * seconds

    def touches(self, other: "Actor") -> bool:
        """Whether two boxes meet, both taken to lie along this one."""
        angle = math.radians(self._yaw)
        east = other.get_location().x - self.get_location().x
        south = other.get_location().y - self.get_location().y
        along = east * math.cos(angle) + south * math.sin(angle)
        across = south * math.cos(angle) - east * math.sin(angle)
        (length, width), (others_length, others_width) = self.size, other.size
        return (
            abs(along) < (length + others_length) / 2 and abs(across) < (width + others_width) / 2
        )

    @property
    def size(self) -> tuple[float, float]:
        return SIZES.get(self.type_id.partition(".")[0], (0.0, 0.0))


class World:
    """The road of a server."""

    def __init__(self, roads: tuple[Road, ...]) -> None:
        self.actors: list[Actor] = []
        self.settings = SimpleNamespace(synchronous_mode=False, fixed_delta_seconds=None)
        self.is_gone = False
        self._roads = roads
        self._numbers = itertools.count(1)

    def get_settings(self) -> Any:
        return SimpleNamespace(**vars(self.settings))

    def apply_settings(self, settings: Any) -> None:
        self.settings = settings

    def get_map(self) -> Any:
        starts = {(r.x, r.y): Waypoint(r, r.lanes // 2, 0.0) for r in self._roads}
        return SimpleNamespace(
            get_spawn_points=lambda: [Transform(Location(*place)) for place in starts],
            get_waypoint=lambda location: starts[location.x, location.y],
        )

    def get_blueprint_library(self) -> Any:
        kinds = {kind: SimpleNamespace(id=kind) for kind in _KINDS}
        return SimpleNamespace(
            find=kinds.__getitem__,
            filter=lambda pattern: [kinds[kind] for kind in kinds if fnmatch(kind, pattern)],
        )

    def spawn_actor(self, blueprint: Any, at: Transform, attach_to: Any = None) -> Actor:
        actor = Actor(self, next(self._numbers), blueprint.id, at)
        actor.attached_to = attach_to
        self.actors.append(actor)
        return actor

    def try_spawn_actor(self, blueprint: Any, at: Transform) -> Actor | None:
        actor = self.spawn_actor(blueprint, at)
        actor._yaw = at.rotation.yaw
        if any(actor.touches(other) for other in self.actors[:-1]):
            self.actors.pop()
            return None
        return actor

    def tick(self) -> None:
        if self.is_gone:
            raise RuntimeError("time-out of 60000ms while waiting for the simulator")
        assert self.settings.synchronous_mode, "else the server does not wait for ticks"
        for actor in self.actors:
            actor.move(self.settings.fixed_delta_seconds)
        for sensor in [one for one in self.actors if one.callback is not None]:
            for other in self.actors:
                car = sensor.attached_to
                if other not in (car, sensor) and car is not None and car.touches(other):
                    assert sensor.callback is not None
                    sensor.callback(SimpleNamespace(other_actor=other))


CARLA: Any = SimpleNamespace(
    Location=Location,
    Rotation=Rotation,
    Transform=Transform,
    Vector3D=lambda x, y, z: SimpleNamespace(x=x, y=y, z=z),
    VehicleControl=VehicleControl,
)
"""The module."""


def client(world: World) -> Any:
    """A connected client."""
    return SimpleNamespace(load_world=lambda name: world, set_timeout=lambda seconds: None)


MOTORWAYS = (Road(x=-300.0, y=40.0, yaw=90.0, lanes=4),)


def driving(world: World) -> DrivingInCarla:
    """An environment on the road of a server."""

    class InFake(DrivingInCarla):
        def _make_simulator(self) -> CarlaSimulator:
            return CarlaSimulator(client(world), CARLA)

    return InFake()
