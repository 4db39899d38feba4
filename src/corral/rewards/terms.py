"""Terms of a reward: numbers in, a number out."""

import math
from collections.abc import Mapping

from corral.errors import UsageError


def share(reached: float, goal: float) -> float:
    """Partial credit: how much of a goal is reached, min(max(reached / goal, 0), 1).

    Raises:
        UsageError: The goal is not above 0.
    """
    if not goal > 0:
        raise UsageError(f"goal={goal}: a share needs a goal above 0.")
    return min(max(reached / goal, 0.0), 1.0)


def excess(count: float, *, each: float, allowed: float = 0, at_most: float = math.inf) -> float:
    """What goes beyond an allowance costs: min(each · max(count − allowed, 0), at_most).

    Subtract it: with ``allowed=0`` for invalid actions, with some turns allowed for long episodes.

    Args:
        count: Of actions, turns or tokens.
        each: Cost of each one beyond ``allowed``.
        allowed: How many are free.
        at_most: The largest cost.
    """
    return min(each * max(count - allowed, 0.0), at_most)


def repetition(times: int, *, at_most: float = 10.0) -> float:
    """The cost of doing a thing for the ``times``-th time again: min(2^(times − 1), at_most).

    0 for the first time (``times=0``), then 1, 2, 4, ... Subtract it.
    """
    return min(2.0 ** (min(times, 64) - 1), at_most) if times > 0 else 0.0


def soft_overlong(tokens: int, *, limit: int, margin: int) -> float:
    """The soft overlong punishment of DAPO: 0 up to ``limit − margin``, then falling to −1.

    Yu et al. 2025, "DAPO: An Open-Source LLM Reinforcement Learning System at Scale"
    (arXiv:2503.14476), equation 13, with y the tokens::

        R(y) =  0                           y ≤ limit − margin
                (limit − margin − y) / margin    limit − margin < y ≤ limit
               −1                           limit < y

    Args:
        tokens: Length of a completion.
        limit: Where the punishment is full.
        margin: How many tokens before it begins.

    Raises:
        UsageError: The margin is not from 1 to the limit.
    """
    if not 0 < margin <= limit:
        raise UsageError(f"margin={margin}: must be from 1 to limit={limit} tokens.")
    return max(min((limit - margin - tokens) / margin, 0.0), -1.0)


def weighted_sum(rewards: Mapping[str, float | None], weights: Mapping[str, float]) -> float | None:
    """Σ weight × reward over the rewards that apply; None when none does."""
    present = [(weights[name], value) for name, value in rewards.items() if value is not None]
    return math.fsum(weight * value for weight, value in present) if present else None
