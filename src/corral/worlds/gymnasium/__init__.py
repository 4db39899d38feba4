"""Any environment of Gymnasium as a world, found as ``gymnasium:ID``."""

from dataclasses import replace
from importlib.util import find_spec

from corral.worlds.family import Family, read_name
from corral.worlds.gymnasium.env import Gymnasium, GymnasiumEnvironment
from corral.worlds.gymnasium.loading import brought_by, check_known
from corral.worlds.needs import Needs
from corral.worlds.policy import any_caller
from corral.worlds.tasks import seeded_rows
from corral.worlds.world import World

__all__ = ["FAMILY", "Gymnasium", "GymnasiumEnvironment", "environment"]

NEEDS = Needs(
    requirements=("gymnasium==1.4.0", "minigrid==3.2.0"),
    modules=("gymnasium",),
    size_mb=180,
    shared_as="gymnasium",
)


def environment(name: str) -> World:
    """The world of an environment.

    Args:
        name: An id that Gymnasium knows, with options if need be:
            ``FrozenLake-v1(is_slippery=False)``. ``module:ID`` imports a module first, which
            registers it.

    Raises:
        UsageError: There is no such environment, as far as that can be said here.
    """
    gym_id, options = read_name(name)
    needs = _needs_of(gym_id)
    if needs is None or needs.are_met():
        check_known(gym_id)
    tasks, evaluation_tasks = seeded_rows(f"Play {gym_id}.\n\n")
    return World(
        name=f"gymnasium:{name}",
        summary=f"Gymnasium's {gym_id}.",
        factory=Gymnasium(gym_id, **options),
        tasks=tasks,
        evaluation_tasks=evaluation_tasks,
        policies={"random": any_caller},
        needs=needs,
    )


def _needs_of(gym_id: str) -> Needs | None:
    """What of packages it takes; None if those of the virtual environment would not do."""
    module = brought_by(gym_id)
    if module in (None, "minigrid"):
        return replace(NEEDS, modules=("gymnasium", *([module] if module else [])))
    return None if find_spec("gymnasium") else NEEDS


FAMILY = Family(
    name="gymnasium",
    summary="Any environment of Gymnasium with few numbers to choose, MiniGrid's among them.",
    world=environment,
    needs=NEEDS,
)
