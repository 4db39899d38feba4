"""Any generator of Reasoning Gym as a world, found as ``reasoning_gym:TASK``."""

from functools import partial

from corral.worlds.family import Family, read_name
from corral.worlds.needs import Needs
from corral.worlds.policy import any_caller
from corral.worlds.reasoning_gym.env import ReasoningTask, check_known
from corral.worlds.tasks import seeded_rows
from corral.worlds.world import World

__all__ = ["FAMILY", "ReasoningTask", "task"]

NEEDS = Needs(
    requirements=("reasoning-gym==0.1.25",),
    modules=("reasoning_gym",),
    size_mb=270,
    shared_as="reasoning_gym",
)


def task(name: str) -> World:
    """The world of a generator.

    Args:
        name: As Reasoning Gym calls it, with settings if need be: ``chain_sum(max_terms=3)``.

    Raises:
        UsageError: There is no such generator, as far as that can be said here.
    """
    generator, settings = read_name(name)
    if NEEDS.are_met():
        check_known(generator)
    tasks, evaluation_tasks = seeded_rows("Answer the question.\n\n")
    return World(
        name=f"reasoning_gym:{name}",
        summary=f"Reasoning Gym's {generator}.",
        factory=partial(ReasoningTask, generator, **settings),
        tasks=tasks,
        evaluation_tasks=evaluation_tasks,
        policies={"random": any_caller},
        needs=NEEDS,
    )


FAMILY = Family(
    name="reasoning_gym",
    summary="Questions of any generator of Reasoning Gym, answered once and scored.",
    world=task,
    needs=NEEDS,
)
