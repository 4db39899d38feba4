"""Echo: say something; the longer, the better, up to ten characters."""

from typing import Any

from corral.worlds.echo.env import Echo
from corral.worlds.echo.solver import POLICIES
from corral.worlds.tasks import draw_in_passes
from corral.worlds.world import World

__all__ = ["WORLD", "Echo", "evaluation_tasks", "tasks"]

MOODS = ("calm", "happy", "loud", "proud", "sad", "shy", "stern", "strange")
KINDS = ("farewell", "greeting", "promise", "proverb", "question", "riddle", "warning", "wish")


def _prompts(*, are_held_out: bool) -> list[str]:
    """Every second pair of a mood and a kind: every word is in prompts of both sorts."""
    return [
        f"Echo a {mood} {kind}."
        for row, mood in enumerate(MOODS)
        for column, kind in enumerate(KINDS)
        if (row + column) % 2 == are_held_out
    ]


PROMPTS = _prompts(are_held_out=False)
HELD_OUT_PROMPTS = _prompts(are_held_out=True)


def tasks(seed: int, count: int) -> list[dict[str, Any]]:
    """``count`` rows ``{"prompt"}``; every prompt comes up once before any comes twice."""
    return [{"prompt": prompt} for prompt in draw_in_passes(PROMPTS, seed=seed, count=count)]


def evaluation_tasks(count: int = len(HELD_OUT_PROMPTS)) -> list[dict[str, Any]]:
    """The fixed rows of evaluations: 32 prompts that are never trained on, again and again."""
    return [{"prompt": HELD_OUT_PROMPTS[place % len(HELD_OUT_PROMPTS)]} for place in range(count)]


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
