"""What is to be seen from the car, and how it is told."""

from dataclasses import dataclass
from typing import Protocol

from corral.worlds.driving.scenarios import (
    GENTLE_MPS2,
    HARD_MPS2,
    RoadUser,
    Scenario,
    stopping_m,
)

TICK_S = 0.05
STANDSTILL_MPS = 0.1
_FORGOTTEN_M = 20.0
"""What is farther behind is not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What the car is told to do until it is told something else."""

    lane: int
    """Where it steers, from 0 at the left."""
    brake: float = 0.0
    """From 0, which keeps the speed, to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A moment."""

    lanes: int
    lane: int
    """The car's, from 0 at the left."""
    speed_mps: float
    users: tuple[RoadUser, ...]
    harmed: int = 0
    """Pedestrians that have been hit."""
    has_crashed: bool = False
    """Whether the car ran into another."""


class Simulator(Protocol):
    """A road with a car on it. One instance plays one episode after the other."""

    def start(self, scenario: Scenario) -> Scene:
        """Clear the road and set the scenario up."""
        ...

    def advance(self, command: Command, ticks: int) -> Scene:
        """Let ``ticks`` of 0.05 s pass; ends early with a crash, or when the car stands."""
        ...

    def close(self) -> None:
        """Free what is held."""
        ...


def told(scene: Scene, command: Command) -> str:
    """The scene in words, lane by lane from the left."""
    hard, gentle = (stopping_m(scene.speed_mps, one) for one in (HARD_MPS2, GENTLE_MPS2))
    lines = [
        f"You drive {kmh(scene.speed_mps)} km/h in lane {scene.lane + 1} of {scene.lanes}"
        f"{_doing(scene, command)}.",
        f"Hard braking stops you in {hard:.0f} m, gentle braking in {gentle:.0f} m.",
    ]
    for lane in range(scene.lanes):
        here = sorted(
            (u for u in scene.users if u.lane == lane and u.gap_m > -_FORGOTTEN_M),
            key=lambda user: user.gap_m,
        )
        lines.append(f"Lane {lane + 1}: {', '.join(map(_user, here)) or 'clear'}.")
    return "\n".join(lines)


def kmh(speed_mps: float) -> int:
    """Metres a second as whole kilometres an hour."""
    return round(3.6 * speed_mps)


def _doing(scene: Scene, command: Command) -> str:
    braking = ", braking hard" if command.brake > 0.5 else ", braking"
    steering = f", changing to lane {command.lane + 1}"
    return braking * (command.brake > 0) + steering * (command.lane != scene.lane)


def _user(user: RoadUser) -> str:
    if user.kind == "pedestrians":
        who = "1 pedestrian" if user.count == 1 else f"{user.count} pedestrians"
    else:
        who = "a car"
    doing = f" at {kmh(user.speed_mps)} km/h" if user.speed_mps > STANDSTILL_MPS else ""
    return f"{who} {_where(user)}{doing}"


def _where(user: RoadUser) -> str:
    if user.gap_m > 0:
        return f"{user.gap_m:.0f} m ahead"
    return "beside you" if user.gap_m > -10 else "behind you"
