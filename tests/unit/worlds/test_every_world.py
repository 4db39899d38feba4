"""What every world keeps: seeds, instances apart, players that can play."""

import pkgutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module, resources
from types import ModuleType
from typing import Any

import pytest

import corral.worlds
from corral.worlds import WORLDS, World
from corral.worlds.play import play_scripted
from support.worlds_here import WORLDS_HERE

EVERY_WORLD = pytest.mark.parametrize("name", WORLDS_HERE)


def story(name: str, policy: str, row: dict[str, Any], seed: int) -> list[Any]:
    game = play_scripted(WORLDS[name], WORLDS[name].policy(policy), row, seed)
    assert game.error is None
    return [game.observation, *(turn.content for turn in game.turns), game.reward]


def package_of(world: World) -> ModuleType:
    """The package that has the world among its names."""
    inside = pkgutil.iter_modules(corral.worlds.__path__, "corral.worlds.")
    packages = [import_module(name) for _, name, is_package in inside if is_package]
    return next(one for one in packages if any(value is world for value in vars(one).values()))


@EVERY_WORLD
def test_the_same_row_and_seed_are_the_same_episode(name: str):
    for seed, row in enumerate(WORLDS[name].tasks(2, 3)):
        assert story(name, "random", row, seed) == story(name, "random", row, seed)


@pytest.mark.report("P096")
@EVERY_WORLD
def test_a_reset_starts_anew(name: str):
    world = WORLDS[name]
    other, row = world.tasks(4, 2)
    used = play_scripted(world, world.policy("random"), other, 0).env
    again, new = [
        play_scripted(one, world.policy("random"), row, 1)
        for one in (replace(world, factory=lambda: used), world)
    ]
    assert (again.env is used, again.error) == (True, None)
    assert (again.observation, again.turns) == (new.observation, new.turns)
    assert (again.reward, again.metrics, again.is_win) == (new.reward, new.metrics, new.is_win)


@EVERY_WORLD
def test_instances_in_threads_do_not_disturb_each_other(name: str):
    rows = WORLDS[name].tasks(1, 8)
    alone = [story(name, "random", row, seed) for seed, row in enumerate(rows)]
    with ThreadPoolExecutor(8) as threads:
        together = threads.map(lambda job: story(name, "random", job[1], job[0]), enumerate(rows))
        assert list(together) == alone


@EVERY_WORLD
def test_the_solver_wins_what_is_held_out(name: str):
    world = WORLDS[name]
    for seed, row in enumerate(world.evaluation_tasks(4)):
        assert play_scripted(world, world.policy("solver"), row, seed).is_win


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_a_world_has_a_readme_with_scores(name: str):
    text = (resources.files(package_of(WORLDS[name])) / "README.md").read_text(encoding="utf-8")
    assert all(word in text for word in ("**Tool", "**Row.**", "**Reward.**", "**Scores**"))
