"""Straight stretches of road on a CARLA map, with coordinates along and across them."""

import math
from dataclasses import dataclass
from typing import Any

_STRAIGHT_DEG = 2.0
"""How much a road may turn from one end of a stretch to the other."""
_BACK_M = 50.0
"""Behind the car's place is its run-up, and traffic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A straight piece of road whose lanes lead the same way, from the place of the car on.

    CARLA's axes are left-handed: with ``yaw`` 0 along x, y is to the right.
    """

    x: float
    y: float
    z: float
    """Of the middle of the leftmost lane, in metres."""
    yaw: float
    """Where it leads, in degrees."""
    lanes: int
    lane_width: float

    def coordinates(self, location: Any) -> tuple[float, float]:
        """Metres along the road, and to the right from the middle of its leftmost lane."""
        east, south = location.x - self.x, location.y - self.y
        c, s = math.cos(math.radians(self.yaw)), math.sin(math.radians(self.yaw))
        return east * c + south * s, south * c - east * s

    def place(
        self, lane: int, along_m: float, aside_m: float = 0.0
    ) -> tuple[float, float, float, float]:
        """x, y, z and yaw of a place in a lane, ``aside_m`` to the right of its middle."""
        across = self.middle(lane) + aside_m
        c, s = math.cos(math.radians(self.yaw)), math.sin(math.radians(self.yaw))
        return (
            self.x + along_m * c - across * s,
            self.y + along_m * s + across * c,
            self.z,
            self.yaw,
        )

    def middle(self, lane: int) -> float:
        """How far to the right the middle of a lane is."""
        return lane * self.lane_width

    def lane_at(self, across_m: float) -> int:
        """The lane at a distance to the right."""
        return max(0, min(self.lanes - 1, round(across_m / self.lane_width)))


def find_stretches(road_map: Any, length_m: float) -> list[Stretch]:
    """The straight stretches that begin where the map lets cars spawn, in its order."""
    waypoints = (road_map.get_waypoint(one.location) for one in road_map.get_spawn_points())
    return [found for one in waypoints if (found := _stretch_at(one, length_m)) is not None]


def _stretch_at(waypoint: Any, length_m: float) -> Stretch | None:
    """The stretch on which a waypoint is, if the road is straight and keeps its lanes."""
    lanes = _lanes_beside(waypoint)
    ends = [*waypoint.next(length_m)[:1], *waypoint.previous(_BACK_M)[:1]]
    if len(ends) < 2 or any(len(_lanes_beside(end)) < len(lanes) for end in ends):
        return None
    first = lanes[0].transform
    yaw = first.rotation.yaw
    if any(
        abs(math.remainder(end.transform.rotation.yaw - yaw, 360)) > _STRAIGHT_DEG for end in ends
    ):
        return None
    at = first.location
    return Stretch(
        x=at.x, y=at.y, z=at.z, yaw=yaw, lanes=len(lanes), lane_width=waypoint.lane_width
    )


def _lanes_beside(waypoint: Any) -> list[Any]:
    """The waypoints beside one in lanes that lead the same way, from the left, itself included."""
    lanes = [waypoint]
    while _leads_along(waypoint, left := lanes[0].get_left_lane()):
        lanes.insert(0, left)
    while _leads_along(waypoint, right := lanes[-1].get_right_lane()):
        lanes.append(right)
    return lanes


def _leads_along(waypoint: Any, other: Any) -> bool:
    """Whether cars drive there, the same way: the sign of a lane's id is its direction."""
    return (
        other is not None
        and str(other.lane_type) == "Driving"
        and other.lane_id * waypoint.lane_id > 0
    )
