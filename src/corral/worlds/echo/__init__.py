"""Echo: say something; the longer, the better, up to ten characters."""

from typing import Any

from corral.worlds.echo.env import Echo
from corral.worlds.echo.solver import POLICIES
from corral.worlds.tasks import draw_in_passes
from corral.worlds.world import World

__all__ = ["WORLD", "Echo", "evaluation_tasks", "tasks"]

PROMPTS = (
    "Echo a greeting.",
    "Echo a proverb.",
    "Echo the name of a city.",
    "Echo a line about the weather.",
)


def tasks(seed: int, count: int) -> list[dict[str, Any]]:
    """``count`` rows ``{"prompt"}``; every prompt comes up once before any comes twice."""
    return [{"prompt": prompt} for prompt in draw_in_passes(PROMPTS, seed=seed, count=count)]


def evaluation_tasks(count: int = len(PROMPTS)) -> list[dict[str, Any]]:
    """The fixed rows of evaluations: the prompts in their order, again and again."""
    return [{"prompt": PROMPTS[place % len(PROMPTS)]} for place in range(count)]


def _is_win(env: Echo) -> bool:
    return env.reward >= env.max_reward


WORLD = World(
    name="echo",
    summary="Say something; the longer, the better, up to ten characters.",
    factory=Echo,
    tasks=tasks,
    evaluation_tasks=evaluation_tasks,
    policies=POLICIES,
    is_win=_is_win,
)
