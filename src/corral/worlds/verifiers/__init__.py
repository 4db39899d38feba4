"""Any environment of verifiers as a world, found as ``verifiers:TASKSET``."""

from corral.worlds.family import Family, read_name
from corral.worlds.needs import Needs
from corral.worlds.policy import any_caller
from corral.worlds.tasks import seeded_rows
from corral.worlds.verifiers.env import VerifiersTasks
from corral.worlds.world import World

__all__ = ["FAMILY", "VerifiersTasks", "taskset"]

PROMPT = "Answer with the tool reply.\n\n"

NEEDS = Needs(
    requirements=("verifiers[ta]==0.4.0", "numpy==2.4.6"),
    modules=("verifiers",),
    size_mb=450,
    shared_as="verifiers",
    max_sessions=16,  # each may have servers of tools, which are processes
)


def taskset(name: str) -> World:
    """The world of a taskset.

    Args:
        name: A module or package that has one, or the path of a file, with its settings if need be:
            ``textarena(game="Wordle-v0")``. ``env={...}`` among them is the environment's block.

    Raises:
        UsageError: That cannot be read. Whether there is such a taskset shows when it is played.
    """
    module, options = read_name(name)
    tasks, evaluation_tasks = seeded_rows(PROMPT)
    return World(
        name=f"verifiers:{name}",
        summary=f"Tasks of {module}, an environment of verifiers.",
        factory=VerifiersTasks(module, **options),
        tasks=tasks,
        evaluation_tasks=evaluation_tasks,
        policies={"random": any_caller},
        needs=NEEDS,
    )


FAMILY = Family(
    name="verifiers",
    summary="Any environment of verifiers, with its own tools, users and rewards.",
    world=taskset,
    needs=NEEDS,
)
