"""A world in a virtual environment of its own: played as if it were here, and gone with the run."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from corral.cli.main import app
from corral.env import prepare
from corral.errors import InfrastructureFault
from corral.hosting import (
    NotInstalledError,
    find_environment,
    install,
    installed_worlds,
    remove,
)
from corral.serve.client import RemoteEnvironment
from corral.serve.ports import free_port
from corral.worlds import find_world
from corral.worlds.play import play_episodes, summary
from support.gong_world import PACKAGE, SPEC, WORLD
from support.process_table import descendants, is_there, wait_until
from support.served_command import environment, serving

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def gong_importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The gong's package on this process's own path, and nothing of it afterwards."""
    monkeypatch.syspath_prepend(str(PACKAGE / "src"))
    yield
    sys.modules.pop("gong", None)


def games(world: Any) -> list[dict[str, Any]]:
    played = play_episodes(world, world.policy("solver"), episodes=12, seed=3)
    return [{**summary(world, game), **game.metrics, "error": game.error} for game in played]


def test_a_game_is_the_same_there_and_here(worlds_home: Path, request: pytest.FixtureRequest):
    hosted = find_environment(SPEC)
    there = games(hosted)
    schemas = prepare(hosted.factory).tools.schemas
    request.getfixturevalue("gong_importable")
    here = find_environment(SPEC)
    assert here.factory is find_world(SPEC).factory is not hosted.factory
    assert games(here) == there
    assert {game["won"] for game in there} == {True, False}
    assert prepare(here.factory).tools.schemas == schemas


RECIPE: dict[str, Any] = {
    "name": "gongs",
    "environment": SPEC,
    "model": {"kind": "scratch", "hidden_size": 32, "layers": 1, "heads": 2},
    "grpo": {
        "tasks": 4,
        "train": {
            "max_steps": 1,
            "num_generations": 2,
            "per_device_train_batch_size": 4,
            "max_completion_length": 16,
            "stop_when_done": True,
        },
    },
    "evaluation": {"games": 1},
}


@pytest.mark.filterwarnings("ignore::UserWarning:torch.*")
def test_a_recipe_comes_to_the_same_there_and_here(
    worlds_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gongs.yaml").write_text(yaml.safe_dump(RECIPE))
    there = trained("there")
    request.getfixturevalue("gong_importable")
    assert trained("here") == there
    assert [stage["name"] for stage in there] == ["base", "grpo"]


def trained(folder: str) -> list[dict[str, Any]]:
    ran = CliRunner().invoke(app, ["train", "gongs.yaml", "--output", folder, "--json"])
    assert ran.exit_code == 0, f"{ran.output}\n{ran.exception!r}"
    return [{**stage, "seconds": None} for stage in json.loads(ran.stdout)["stages"]]


def test_it_has_the_packages_that_clash_with_ours(worlds_home: Path):
    import packaging

    (one,) = installed_worlds()
    program = subprocess.run(
        [one.folder / "bin" / "gong"], capture_output=True, text=True, check=True, timeout=60
    )
    assert program.stdout == "21.3\n"
    assert packaging.__version__ != "21.3"
    assert one.note.size_bytes > 1e6


def test_an_environment_that_is_there_is_not_made_again(worlds_home: Path):
    lines: list[str] = []
    (there,) = installed_worlds()
    assert install(WORLD, tell=lines.append) == there
    assert lines == []


RUN = """
import asyncio, sys, time
from corral.hosting import find_environment

async def look(env):
    await env.reset(limit=3)
    return await env.look()

for _ in range(2):
    print(asyncio.run(look(find_environment(sys.argv[1]).factory())), flush=True)
{then}
"""


@pytest.mark.parametrize(
    ("how", "then"),
    [
        ("ends", ""),
        ("raises", "raise ValueError"),
        ("is interrupted", "time.sleep(600)"),
        ("is killed", "time.sleep(600)"),
    ],
)
def test_its_server_is_one_for_the_process_and_ends_with_it(worlds_home: Path, how: str, then: str):
    run = subprocess.Popen(
        [sys.executable, "-c", RUN.format(then=then), SPEC],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
        text=True,
    )
    assert run.stdout is not None
    first, second = (run.stdout.readline().split() for _ in range(2))
    assert first[0] == second[0], "both factories play on one server"
    assert first[2] == "21.3"
    pids = {int(pid) for pid in (*first[:2], *second[:2])}
    if then.startswith("time"):
        pids |= set(descendants(run.pid))
        assert len(pids) > 3
        run.send_signal(signal.SIGKILL if how == "is killed" else signal.SIGINT)
    run.wait(timeout=30)
    run.stdout.close()
    assert wait_until(lambda: not any(map(is_there, pids)))


async def test_a_server_that_dies_is_started_again_for_the_next_environment(worlds_home: Path):
    factory = find_environment(SPEC, max_sessions=2).factory
    first = factory()
    await first.reset(limit=5)
    pid = int((await first.look()).split()[0])
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not is_there(pid))
    second = await begun(factory)
    assert await second.strike(5) == "boom"
    assert await second.get_reward() == 1.0
    await second.close()


async def begun(factory: Any) -> Any:
    """An episode on a fresh environment, tried again as a rollout would."""
    for _ in range(20):
        env = factory()
        try:
            await env.reset(limit=5)
            return env
        except InfrastructureFault:
            await asyncio.sleep(0.5)
    raise AssertionError("it did not come back")


def test_serve_hands_over_to_the_interpreter_that_has_the_packages(worlds_home: Path):
    port = free_port()
    command = [sys.executable, "-m", "corral.cli.main", "serve", SPEC, "--port", str(port)]
    with serving(command, port) as url:
        assert asyncio.run(opened(url)) == "A gong that bears 4."


async def opened(url: str) -> Any:
    env: Any = RemoteEnvironment(url)()
    shown = await env.reset(limit=4)
    assert (await env.look()).endswith("21.3")
    await env.close()
    return shown


def test_an_install_that_is_killed_leaves_nothing_that_counts(tmp_path: Path):
    home = {"CORRAL_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "corral.cli.main", "install", SPEC]
    installing = subprocess.Popen(command, env=environment() | home, stderr=subprocess.DEVNULL)
    assert wait_until(lambda: bool(list(tmp_path.glob("worlds/.draft-gong-*/bin"))), within_s=60)
    below = set(descendants(installing.pid))
    assert below
    installing.kill()
    installing.wait()
    assert wait_until(lambda: not any(map(is_there, below)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CORRAL_HOME", str(tmp_path))
        assert installed_worlds() == []
        with pytest.raises(NotInstalledError, match="corral install"):
            find_environment(SPEC)
        assert remove("gong") == []
    assert list(tmp_path.glob("worlds/[!.]*")) == []
    assert list(tmp_path.glob("worlds/.draft*")) == []
