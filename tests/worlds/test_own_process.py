"""Environments in processes of their own: the same to play, and nothing of them is left."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.env import OwnProcess, call_get_reward, call_reset, is_done, metrics, prepare
from corral.env.own_process import CallTimeoutError, ProcessLostError
from corral.errors import EnvironmentFault, InfrastructureFault, UsageError
from support.own_process_worlds import Handful
from support.process_table import descendants, is_there, wait_until


@pytest.fixture
def world() -> Iterator[Any]:
    made = OwnProcess(Handful, call_timeout_s=20)()
    made.reset()
    yield made
    made.close()


def test_a_model_sees_the_same_tools_and_columns():
    here, there = prepare(Handful), prepare(OwnProcess(Handful))
    assert there.tools.schemas == here.tools.schemas
    assert (there.name, there.has_reward) == (here.name, here.has_reward)


async def test_an_episode_is_the_same():
    assert await played(OwnProcess(Handful)) == await played(Handful)


async def played(factory: Any) -> list[Any]:
    kind = prepare(factory)
    env = kind.construct().instance
    tools = kind.tools.bind(env)
    told: list[Any] = [await call_reset(env, {"prompt": "Go.", "start": 3})]
    for name, arguments in [
        ("add", {"numbers": [1, 2]}),
        ("add", {"numbers": "[1]", "how": "minus"}),
        ("add", {"numbers": [1], "how": "times"}),
        ("add", {}),
        ("fail", {"how": "raise"}),
        ("fly", {}),
        ("look", {}),
        ("add", {"numbers": [8]}),
    ]:
        told += [await tools.call(name, arguments), is_done(env), env.won]
    with pytest.raises(InfrastructureFault, match=r"fail: ConnectionError: the cable"):
        await tools.call("fail", {"how": "lose connection"})
    told += [await call_get_reward(env), metrics(env), await call_reset(env, {}), env.won]
    with pytest.raises(EnvironmentFault, match=r"Handful.reset raised ValueError: start=-1"):
        await call_reset(env, {"start": -1})
    getattr(env, "close", lambda: None)()
    return told


@pytest.mark.report("P211")
def test_a_process_starts_with_reset_and_ends_with_close_with_all_that_it_started():
    world = OwnProcess(Handful)()
    before = set(descendants(os.getpid()))
    with pytest.raises(ProcessLostError, match=r"call reset\(\) first"):
        world.look()
    world.reset()
    pid, scratch = world.whereabouts().split()
    grandchild = int(world.breed())
    assert Path(scratch).is_dir()
    world.close()
    world.close()
    assert not is_there(int(pid))
    assert not is_there(grandchild)
    assert not Path(scratch).exists()
    assert set(descendants(os.getpid())) <= before
    with pytest.raises(ProcessLostError, match="was closed"):
        world.reset()


def test_a_call_that_hangs_is_ended_in_time_and_only_its_environment_is_lost(world: Any):
    hung = OwnProcess(Handful, call_timeout_s=1.0)()
    hung.reset()
    pid, grandchild = int(hung.whereabouts().split()[0]), int(hung.breed())
    begun = time.monotonic()
    with pytest.raises(CallTimeoutError, match="fail took longer than 1 s"):
        hung.fail("hang")
    assert time.monotonic() - begun < 10
    assert not is_there(pid)
    assert not is_there(grandchild)
    with pytest.raises(ProcessLostError, match="took longer"):
        hung.reset()
    hung.close()
    assert world.add([1]) == "1"


@pytest.mark.parametrize("how", ["exits", "is killed"])
def test_a_process_that_ends_is_an_infrastructure_fault(world: Any, how: str):
    pid, grandchild = int(world.whereabouts().split()[0]), int(world.breed())
    if how == "is killed":
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(ProcessLostError, match="ended during fail"):
        world.fail("exit")
    assert wait_until(lambda: not is_there(grandchild))


def test_an_environment_can_be_closed_while_a_call_hangs(world: Any):
    raised: list[BaseException] = []

    def hang() -> None:
        try:
            world.fail("hang")
        except ProcessLostError as error:
            raised.append(error)

    pid = int(world.whereabouts().split()[0])
    thread = threading.Thread(target=hang)
    thread.start()
    time.sleep(0.3)
    begun = time.monotonic()
    world.close()
    thread.join(timeout=10)
    assert time.monotonic() - begun < 8
    assert raised
    assert not is_there(pid)


def pid_of(world: Any) -> int:
    return int(world.whereabouts().split()[0])


def test_a_process_waits_for_the_next_environment_which_starts_anew():
    factory = OwnProcess(Handful, kept_s=60)
    first, other = factory(), factory()
    first.reset()
    other.reset()
    assert pid_of(first) != pid_of(other)
    first.add([10])
    pid, grandchild = pid_of(first), int(first.breed())
    first.close()
    with pytest.raises(ProcessLostError, match="was closed"):
        first.reset()
    following = factory()
    assert not following.done
    assert following.reset(start=2) == "at 2"
    assert pid_of(following) == pid
    assert (following.done, following.won, following.metrics) == (False, False, {"calls": 0.0})
    del following, other
    assert wait_until(lambda: not is_there(pid) and not is_there(grandchild))


def test_a_process_that_nobody_takes_in_time_is_ended():
    world = OwnProcess(Handful, kept_s=0.5)()
    world.reset()
    pid, grandchild = pid_of(world), int(world.breed())
    world.close()
    assert is_there(pid)
    assert wait_until(lambda: not is_there(pid) and not is_there(grandchild))


@pytest.mark.parametrize("how", ["lose connection", "refuse", "die"])
def test_what_has_failed_does_not_wait(how: str):
    factory = OwnProcess(Handful, kept_s=60)
    world = factory()
    world.reset()
    pid = pid_of(world)
    if how == "lose connection":
        with pytest.raises(InfrastructureFault):
            world.fail(how)
    elif how == "refuse":
        with pytest.raises(ValueError, match="start=-1"):
            world.reset(start=-1)
    world.close()
    if how == "die":
        os.kill(pid, signal.SIGKILL)
        assert wait_until(lambda: not is_there(pid))
    following = factory()
    assert following.reset() == "at 0"
    assert pid_of(following) != pid
    assert not is_there(pid)


def test_one_that_is_forgotten_is_ended():
    world = OwnProcess(Handful)()
    world.reset()
    pid = int(world.whereabouts().split()[0])
    del world
    assert wait_until(lambda: not is_there(pid))


STARTER = """
import time
from corral.env import OwnProcess
from support.own_process_worlds import Handful
factory = OwnProcess(Handful, kept_s=600)
worlds = [factory() for _ in range(2)]
for world in worlds:
    world.reset()
    print(world.whereabouts().split()[0], world.breed(), flush=True)
worlds.pop().close()  # one that waits for the next, and one that is open
print("one waits", flush=True)
time.sleep({sleep_s})
"""


@pytest.mark.report("P113")
@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "ends"])
def test_nothing_is_left_when_the_starter_is_not(is_killed: bool):
    tests = Path(__file__).resolve().parents[1]
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(tests)]))
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER.format(sleep_s=600 if is_killed else 0)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": path},
        text=True,
    )
    assert starter.stdout is not None
    pids = [int(pid) for _ in range(2) for pid in starter.stdout.readline().split()]
    assert starter.stdout.readline() == "one waits\n"
    if is_killed:
        assert all(map(is_there, pids))
        starter.kill()
    starter.wait(timeout=20)
    starter.stdout.close()
    assert wait_until(lambda: not any(map(is_there, pids)))


def test_a_class_that_another_process_cannot_import_is_refused():
    class Local:
        def reset(self) -> None: ...

    with pytest.raises(UsageError, match="module of its own"):
        OwnProcess(Local)
