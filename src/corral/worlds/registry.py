"""Names to worlds: built in, added by packages, and any environment class as ``module:Class``."""

import inspect
from collections.abc import Callable
from typing import Any, cast

from corral.env.lifecycle import prepare
from corral.env.registry import resolve
from corral.errors import UsageError
from corral.worlds import (
    browser,
    catch,
    driving,
    echo,
    guess_number,
    gymnasium,
    mcp,
    multi_env,
    openreward,
    openspiel,
    reasoning_gym,
    sudoku,
    textarena,
    verifiers,
    wordle,
)
from corral.worlds.entry_points import added_names, added_world
from corral.worlds.family import Family
from corral.worlds.policy import random_caller
from corral.worlds.world import Row, TaskSource, World

WORLDS: dict[str, World] = {
    world.name: world
    for world in (
        browser.WORLD,
        catch.WORLD,
        driving.WORLD,
        driving.IN_CARLA,
        echo.WORLD,
        guess_number.WORLD,
        multi_env.WORLD,
        sudoku.WORLD,
        sudoku.SMALL,
        wordle.WORLD,
    )
}

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        gymnasium.FAMILY,
        mcp.FAMILY,
        openreward.FAMILY,
        openspiel.FAMILY,
        reasoning_gym.FAMILY,
        textarena.FAMILY,
        verifiers.FAMILY,
    )
}
"""What stands before the colon of ``family:name``, and what makes the world of that name."""


def find_world(spec: str) -> World:
    """The world called ``spec``: a name, ``family:name``, ``module:Class`` or ``file.py:Class``.

    In place of an environment class, a module may also name a :class:`World` of its own.
    """
    if is_named(spec):
        return _named(spec)
    found = resolve(spec, also=World)
    return found if isinstance(found, World) else world_of(found, name=spec)


def find_installable(spec: str) -> World | Family:
    """What ``corral install`` is given: a family, whose worlds share one environment, or a world.

    Raises:
        UsageError: There is neither; the message says what there is.
    """
    return FAMILIES[spec] if spec in FAMILIES else find_world(spec)


def added_worlds() -> tuple[dict[str, World], dict[str, str]]:
    """The worlds that installed packages add, and of those that cannot be played the reasons."""
    worlds: dict[str, World] = {}
    failures: dict[str, str] = {}
    for name in added_names():
        if name in WORLDS or name in FAMILIES:
            failures[name] = f"A package adds a world {name!r}, which is a built-in name."
            continue
        try:
            worlds[name] = _named(name)
        except UsageError as error:
            failures[name] = str(error)
    return worlds, failures


def is_named(spec: str) -> bool:
    """Whether ``spec`` names a world that is known here, and not a place in somebody's code."""
    return ":" not in spec or spec.partition(":")[0] in FAMILIES


def is_url(spec: str) -> bool:
    """Whether ``spec`` is the address of a server; a family may take addresses of its own."""
    return "://" in spec and not is_named(spec)


def _named(spec: str) -> World:
    family, colon, name = spec.partition(":")
    if colon:
        return FAMILIES[family].world(name)
    world = WORLDS.get(spec) or added_world(spec, world_of)
    if world is not None:
        return world
    if spec in FAMILIES:
        raise UsageError(f"{spec!r} stands for many worlds. Name one of them: {spec}:NAME")
    added = added_names()
    also = f" Added by packages: {', '.join(added)}." if added else ""
    raise UsageError(
        f"Unknown world {spec!r}. Built in: {', '.join(sorted(WORLDS))}.{also} For a class of your "
        "own write module:Class or path/to/file.py:Class."
    )


def world_of(factory: Callable[[], Any], *, name: str) -> World:
    """A world around an environment class (or a factory) that brings nothing but itself.

    Its rows come from a function ``tasks(seed, count)`` in the module of the class, where there is
    one; otherwise they hold a prompt alone. A game counts as won when the environment's ``won`` is
    true after it.
    """
    kind = prepare(factory)
    tasks = _tasks_beside(kind.cls)
    summary = (inspect.getdoc(kind.cls) or f"The environment {name}.").split("\n", 1)[0]
    return World(
        name=name,
        summary=summary,
        factory=factory,
        tasks=tasks,
        evaluation_tasks=lambda count: tasks(0, count),
        policies={"random": random_caller(kind.tools.schemas)},
    )


def _tasks_beside(environment_class: type) -> TaskSource:
    reset: Any = environment_class.__dict__.get("reset")
    beside: Any = getattr(reset, "__globals__", {}).get("tasks")
    return cast("TaskSource", beside) if callable(beside) else _prompts_alone


def _prompts_alone(seed: int, count: int) -> list[Row]:
    return [{"prompt": "Begin."} for _ in range(count)]
