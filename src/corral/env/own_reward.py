"""The reward that an environment gives itself: one number, or parts that add up to it."""

import inspect
import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, cast

from corral.env.contract import LARGEST_REWARD
from corral.env.introspection import as_float, required_parameters, shown
from corral.env.threads import run_user_code
from corral.errors import EnvironmentFault, UsageError, environment_boundary


async def call_rewards(
    environment: object, name: str, *, executor: Executor | None = None
) -> dict[str, float | None]:
    """The reward columns that an environment fills: its ``reward_parts``, else ``{name: reward}``.

    Raises:
        EnvironmentFault: ``get_reward`` or ``reward_parts`` failed, or they do not agree.
        InfrastructureFault: What they stand on failed.
    """
    reward = await call_get_reward(environment, executor=executor)
    parts = reward_parts(environment)
    if not parts:
        return {name: reward}
    applying = [value for value in parts.values() if value is not None]
    total = math.fsum(applying) if applying else None
    if (total is None) != (reward is None) or not math.isclose(
        total or 0.0, reward or 0.0, rel_tol=1e-6, abs_tol=1e-6
    ):
        raise EnvironmentFault(
            f"{type(environment).__name__}.get_reward returned {reward}, but its reward_parts "
            f"{parts} add up to {total}. Let get_reward return their sum."
        )
    return parts


async def call_get_reward(environment: object, *, executor: Executor | None = None) -> float | None:
    """The environment's own reward; None where it has none to give.

    Raises:
        EnvironmentFault: ``get_reward`` raised, or returned what is no finite number.
        InfrastructureFault: What it stands on failed.
    """
    function = getattr(environment, "get_reward", None)
    if function is None:
        return None
    what = f"{type(environment).__name__}.get_reward"
    with environment_boundary(what):
        return _reward(what, await run_user_code(function, executor=executor))


def reward_parts(environment: object) -> dict[str, float | None]:
    """The terms of the environment's reward by name; empty where it does not tell them apart.

    Raises:
        EnvironmentFault: Reading them failed, or one is neither a finite number nor None.
    """
    what = f"{type(environment).__name__}.reward_parts"
    # Looked for before it is read: an AttributeError within a property is no absence.
    if inspect.getattr_static(environment, "reward_parts", None) is None:
        return {}
    with environment_boundary(what):
        values = cast("Any", environment).reward_parts
        if not isinstance(values, Mapping):
            return {}
        parts = cast("Mapping[object, object]", values)
        return {str(name): _reward(f"{what}[{name!r}]", part) for name, part in parts.items()}


def reward_columns(environment: Any, name: str) -> tuple[str, ...]:
    """The names of the columns that a new environment will fill; none without ``get_reward``.

    Raises:
        UsageError: ``get_reward`` cannot be called, or is missing beside ``reward_parts``.
        EnvironmentFault: ``reward_parts`` cannot be read before the first ``reset``.
    """
    parts = tuple(reward_parts(environment))
    cls = cast("type[Any]", type(environment))
    if not hasattr(cls, "get_reward"):
        if parts:
            raise UsageError(
                f"{name} has reward_parts but no get_reward. Add: def get_reward(self) -> float: "
                "return sum(self.reward_parts.values())"
            )
        return ()
    if not callable(environment.get_reward):
        raise UsageError(f"{name}.get_reward must be a method: def get_reward(self) -> float")
    missing = required_parameters(environment.get_reward)
    if missing:
        raise UsageError(
            f"{name}.get_reward is called without arguments, but needs {', '.join(missing)}. "
            "Keep what it needs on self: def get_reward(self) -> float"
        )
    return parts or (name,)


def _reward(what: str, value: object) -> float | None:
    if value is None:
        return None
    number = as_float(value)
    if number is None or not abs(number) < LARGEST_REWARD:
        raise EnvironmentFault(
            f"{what} returned {shown(value)}. Return a finite number, or None for no reward."
        )
    return number
