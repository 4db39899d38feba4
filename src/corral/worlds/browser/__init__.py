"""Browser: small tasks on web pages (MiniWoB), in a real Chromium."""

from dataclasses import replace
from functools import partial
from typing import Any

from corral.env.own_process import OwnProcess
from corral.worlds.browser.chromium import chromium_problem
from corral.worlds.browser.env import Browser, BrowserWithPictures
from corral.worlds.browser.solver import POLICIES, TASKS
from corral.worlds.needs import Needs
from corral.worlds.tasks import draw_in_passes
from corral.worlds.world import World

__all__ = [
    "KEPT_S",
    "ONE_CLICK",
    "PICTURES",
    "TASKS",
    "WORLD",
    "Browser",
    "BrowserWithPictures",
    "evaluation_tasks",
    "of_tasks",
    "tasks",
]

PROMPT = "Do the task on the web page.\n\n"
HELD_OUT = 1_000_000
"""Seeds of pages from here on are for evaluation."""
KEPT_S = 10.0
"""How long a browser waits for the next page: starting one takes longer than most episodes."""

NEEDS = Needs(
    requirements=(
        "browsergym-core==0.14.3",
        "browsergym-miniwob==0.14.3",
        "miniwob==1.1.0",
        "playwright==1.44.0",
        "lxml==5.4.0",
    ),
    modules=("browsergym", "miniwob", "playwright"),
    size_mb=420,
    newest_python=(3, 12),  # the last for which Playwright's greenlet is built
    max_sessions=8,
    system_problem=chromium_problem,
)


def tasks(seed: int, count: int, *, names: tuple[str, ...] = TASKS) -> list[dict[str, Any]]:
    """``count`` rows ``{"prompt", "task", "seed"}``; every task once before any comes twice."""
    return [
        {"prompt": PROMPT, "task": name, "seed": _page_seed(seed, place)}
        for place, name in enumerate(draw_in_passes(names, seed=seed, count=count))
    ]


def evaluation_tasks(count: int, *, names: tuple[str, ...] = TASKS) -> list[dict[str, Any]]:
    """The fixed rows of evaluations: the tasks in their order, again and again on other pages."""
    return [
        {"prompt": PROMPT, "task": names[place % len(names)], "seed": HELD_OUT + place}
        for place in range(count)
    ]


def of_tasks(*names: str, pictures: bool = False) -> World:
    """The world of certain MiniWoB tasks, such as ``of_tasks("click-test", "email-inbox")``.

    Args:
        names: Any of the benchmark's 125 tasks; the solver knows those of ``TASKS``.
        pictures: Whether the page is shown as a picture, too.
    """
    shown = PICTURES if pictures else WORLD
    return replace(
        shown,
        tasks=partial(tasks, names=names),
        evaluation_tasks=partial(evaluation_tasks, names=names),
    )


def _page_seed(seed: int, place: int) -> int:
    return (seed * 10_007 + place) % HELD_OUT


WORLD = World(
    name="browser",
    summary="Do a small task on a web page, in a real Chromium.",
    factory=OwnProcess(Browser, call_timeout_s=30, reset_timeout_s=120, kept_s=KEPT_S),
    tasks=tasks,
    evaluation_tasks=evaluation_tasks,
    policies=POLICIES,
    needs=NEEDS,
)
ONE_CLICK = of_tasks("click-dialog-2", "focus-text-2")
"""Two tasks in which the first click decides; played as ``corral.worlds.browser:ONE_CLICK``."""

PICTURES = replace(
    WORLD,
    summary="Do a small task on a web page, shown as a picture and as text.",
    factory=OwnProcess(BrowserWithPictures, call_timeout_s=30, reset_timeout_s=120, kept_s=KEPT_S),
)
"""For models that read images; played as ``corral.worlds.browser:PICTURES``."""
