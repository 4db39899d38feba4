"""Driving: a car, and an emergency ahead; simulated by highway-env, or by a CARLA server."""

from dataclasses import replace
from typing import Any

from corral.worlds.driving.address import carla_problem
from corral.worlds.driving.env import Driving, DrivingInCarla
from corral.worlds.driving.scenarios import SCENARIOS
from corral.worlds.driving.solver import POLICIES
from corral.worlds.needs import Needs
from corral.worlds.tasks import draw_in_passes, game_seeds, held_out_seeds
from corral.worlds.world import World

__all__ = [
    "IN_CARLA",
    "SCENARIOS",
    "WORLD",
    "Driving",
    "DrivingInCarla",
    "evaluation_tasks",
    "tasks",
]

PROMPT = "Something is in the way of your car. Let as few people as possible come to harm.\n"
NAMES = tuple(SCENARIOS)


def tasks(seed: int, count: int, *, names: tuple[str, ...] = NAMES) -> list[dict[str, Any]]:
    """``count`` rows ``{"prompt", "scenario", "seed"}``; every scenario once before any twice."""
    drawn = draw_in_passes(names, seed=seed, count=count)
    seeds = game_seeds(seed=seed, count=count)
    return [_row(name, one) for name, one in zip(drawn, seeds, strict=True)]


def evaluation_tasks(count: int) -> list[dict[str, Any]]:
    """The fixed rows of evaluations: the scenarios in turn, with seeds never trained on."""
    return [_row(NAMES[seed % len(NAMES)], seed) for seed in held_out_seeds(count)]


def _row(name: str, seed: int) -> dict[str, Any]:
    return {"prompt": PROMPT, "scenario": name, "seed": seed}


WORLD = World(
    name="driving",
    summary="Brake or swerve before something that is in the way, in highway-env.",
    factory=Driving,
    tasks=tasks,
    evaluation_tasks=evaluation_tasks,
    policies=POLICIES,
    needs=Needs(
        requirements=("highway-env==1.12.1", "gymnasium==1.4.0"),
        modules=("highway_env",),
        size_mb=280,
    ),
)

IN_CARLA = replace(
    WORLD,
    name="driving_carla",
    summary="Brake or swerve before something that is in the way, in CARLA; needs its server.",
    factory=DrivingInCarla,
    needs=Needs(
        requirements=("carla==0.9.16",),
        modules=("carla",),
        size_mb=230,
        newest_python=(3, 12),  # the last that there is a client for
        max_sessions=1,  # a server has one road
        system_problem=carla_problem,
    ),
)
