"""Reward functions for trainers: what they take as ``reward_funcs``."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from corral.rewards.terms import soft_overlong

Env = TypeVar("Env")


def for_class(
    environment_class: type[Env], read: Callable[[Env], float | None], *, name: str = ""
) -> Callable[..., list[float | None]]:
    """A function that reads the environments of one class, and does not apply to those of others.

    ::

        reward_funcs = [for_class(Wordle, lambda game: float(game.won), name="won")]

    Args:
        environment_class: Whose episodes are scored, subclasses included; others get None.
        read: From an environment, after its episode, to its reward.
        name: The column's name; by default that of ``read``.
    """

    def reward(environments: Sequence[Any], **_: Any) -> list[float | None]:
        return [read(one) if isinstance(one, environment_class) else None for one in environments]

    reward.__name__ = name or read.__name__
    return reward


def get_soft_overlong_punishment(
    max_completion_len: int, soft_punish_cache: int
) -> Callable[..., list[float | None]]:
    """A function that punishes long completions as DAPO does, see :func:`soft_overlong`.

    Counts are those of ``completion_ids``: the tokens of the model and of tools.

    Args:
        max_completion_len: Where the punishment is full, in tokens.
        soft_punish_cache: How many tokens before it begins.

    Raises:
        UsageError: The second is not from 1 to the first.
    """
    soft_overlong(0, limit=max_completion_len, margin=soft_punish_cache)  # refuses a bad margin

    def soft_overlong_punishment(
        completion_ids: Sequence[Sequence[int]], **_: Any
    ) -> list[float | None]:
        return [
            soft_overlong(len(ids), limit=max_completion_len, margin=soft_punish_cache)
            for ids in completion_ids
        ]

    return soft_overlong_punishment
