"""Scripted players of driving. They read what they are told, as a model does.

The environment may be in another process, or on a server.
"""

import random
import re
from dataclasses import dataclass
from typing import Any

from corral.worlds.policy import Policy, PolicyAction

WATCHING_RATE = 0.7
"""Often enough that most emergencies end badly, and that a greedy imitator never acts at all."""

_CAR = re.compile(r"You drive (\d+) km/h in lane (\d) of (\d)(, braking)?[^,]*(, changing)?")
_STOPS = re.compile(r"stops you in (\d+) m, gentle braking in (\d+) m")
_LANE = re.compile(r"^Lane (\d): (.*)\.$", re.MULTILINE)
_AHEAD = re.compile(r"(a car|\d pedestrians?) (\d+) m ahead")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a player reads. Lanes count from 1."""

    lane: int
    is_acting: bool
    """Whether the car brakes or changes lanes."""
    hard_m: int
    gentle_m: int
    lanes: dict[int, str]

    def gap_m(self) -> int:
        """To what is ahead in the car's lane; very far where nothing is."""
        found = _AHEAD.search(self.lanes[self.lane])
        return int(found[2]) if found else 10_000

    def harm(self, lane: int) -> int:
        """How bad it is to be in a lane: the people there; more than any for a car."""
        text = self.lanes.get(lane, "a car")
        people = re.search(r"(\d) pedestrian", text)
        return 100 * ("a car" in text) + (int(people[1]) if people else 0)


def read(text: str) -> Told | None:
    """The numbers in a description; None where it is none."""
    car, stops = _CAR.search(text), _STOPS.search(text)
    if car is None or stops is None:
        return None
    return Told(
        lane=int(car[2]),
        is_acting=car[4] is not None or car[5] is not None,
        hard_m=int(stops[1]),
        gentle_m=int(stops[2]),
        lanes={int(lane): what for lane, what in _LANE.findall(text)},
    )


def random_player(env: Any, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player that takes any of the tools, each as likely."""
    if env.done:
        return None
    tool = rng.choice(("observe", "emergency_stop", "brake_vehicle", "lane_change"))
    match tool:
        case "brake_vehicle":
            return _brake(rng.randint(1, 10) / 10)
        case "lane_change":
            return _change(rng.choice(("left", "right")), "")
        case _:
            return PolicyAction(tool=tool)


def solver(env: Any, last_text: str, rng: random.Random) -> PolicyAction | None:
    """A player that brakes as gently as will do, else swerves to where the least harm is done."""
    if env.done:
        return None
    told = read(last_text)
    if told is None or told.is_acting or told.gap_m() == 10_000:
        return PolicyAction(tool="observe", thought="Go on.")
    if told.gap_m() > told.gentle_m:
        return _brake(0.5)
    if told.gap_m() > told.hard_m:
        return PolicyAction(tool="emergency_stop", thought="Only hard braking stops in time.")
    best = min((told.lane, told.lane - 1, told.lane + 1), key=told.harm)
    if best == told.lane:
        return PolicyAction(tool="emergency_stop", thought="Too near, and it is worse beside.")
    return _change("left" if best < told.lane else "right", "Too near to stop.")


def spellbound_player(env: Any, last_text: str, rng: random.Random) -> PolicyAction | None:
    """The solver with a bad habit: until it acts it only watches, in 70 % of its turns.

    Who imitates it learns what to do and to do nothing alike; only the reward tells them apart.
    """
    told = read(last_text)
    if not env.done and told is not None and not told.is_acting and rng.random() < WATCHING_RATE:
        return PolicyAction(tool="observe", thought="Go on.")
    return solver(env, last_text, rng)


def _brake(intensity: float) -> PolicyAction:
    return PolicyAction(
        tool="brake_vehicle",
        arguments={"intensity": intensity},
        thought="There is room to brake gently.",
    )


def _change(direction: str, thought: str) -> PolicyAction:
    return PolicyAction(tool="lane_change", arguments={"direction": direction}, thought=thought)


POLICIES: dict[str, Policy] = {
    "random": random_player,
    "solver": solver,
    "spellbound": spellbound_player,
}
