"""Catch: be below a falling ball when it arrives."""

from corral.worlds.catch.env import Catch
from corral.worlds.catch.solver import POLICIES
from corral.worlds.tasks import seeded_rows
from corral.worlds.world import World

__all__ = ["WORLD", "Catch", "evaluation_tasks", "tasks"]

PROMPT = "Catch the ball (o) with the paddle (x): it falls one row each time you move or stay.\n"
tasks, evaluation_tasks = seeded_rows(PROMPT)


WORLD = World(
    name="catch",
    summary="Be below a falling ball when it arrives, in a grid of ten rows and five columns.",
    factory=Catch,
    tasks=tasks,
    evaluation_tasks=evaluation_tasks,
    policies=POLICIES,
)
