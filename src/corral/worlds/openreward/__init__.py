"""Any environment of OpenReward as a world, found as ``openreward:NAME``."""

from corral.worlds.family import Family, read_name
from corral.worlds.needs import Needs
from corral.worlds.openreward.env import OpenRewardTasks
from corral.worlds.policy import any_caller
from corral.worlds.tasks import seeded_rows
from corral.worlds.world import World

__all__ = ["FAMILY", "OpenRewardTasks", "environment"]

NEEDS = Needs(
    requirements=("openreward==0.1.167",),
    modules=("openreward",),
    size_mb=250,
    shared_as="openreward",
)


def environment(name: str) -> World:
    """The world of an environment.

    Args:
        name: As its server calls it, or ``module:Class`` or ``path/to/file.py:Class`` of one that
            is to be served here; with arguments of :class:`OpenRewardTasks` if need be:
            ``my_env(url="http://127.0.0.1:8080", split="train")``.

    Raises:
        UsageError: That cannot be read. Whether there is such an environment shows when it is
            played.
    """
    found, options = read_name(name)
    tasks, evaluation_tasks = seeded_rows("")
    return World(
        name=f"openreward:{name}",
        summary=f"Tasks of {found}, an environment of OpenReward.",
        factory=OpenRewardTasks(found, **options),
        tasks=tasks,
        evaluation_tasks=evaluation_tasks,
        policies={"random": any_caller},
        needs=NEEDS,
    )


FAMILY = Family(
    name="openreward",
    summary="Any environment of OpenReward, at a URL, from its platform or served here.",
    world=environment,
    needs=NEEDS,
)
