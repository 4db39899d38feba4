"""The same world in-process and through a server: the same tools, transcripts and rewards."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from corral.env import call_reset, call_rewards, is_done, metrics, prepare
from corral.env.io_thread import io_thread
from corral.env.lifecycle import close
from corral.errors import InfrastructureFault
from corral.serve.client.launchers import LocalProcess
from corral.serve.client.remote import RemoteEnvironment
from corral.worlds.registry import find_world

SLOTS = 8
WORLDS = ("guess_number", "wordle", "echo", f"{__file__}:Clerk")


class Clerk:
    """Says what its tools return, in more ways than the packaged worlds do."""

    def reset(self, **row: Any) -> str:
        return "Ask."

    def count(self, things: list[str]) -> dict[str, int]:
        """Count things.

        Args:
            things: What to count.

        Returns:
            How many there are of each.
        """
        return dict(Counter(things))

    def note(self, text: str):
        """Write something down.

        Args:
            text: What.
        """
        self.text = text

    def get_reward(self) -> float:
        return 0.25


class Courier:
    """Brings a parcel, or loses it on the way."""

    REQUIRES_OWN_THREAD = False

    def reset(self, **row: Any) -> None:
        self.won = self.done = False

    def bring(self, over_bridge: bool) -> str:
        """Bring the parcel.

        Args:
            over_bridge: Whether to take the bridge, which is down.
        """
        if over_bridge:
            raise ConnectionError("the bridge is down")
        self.won = self.done = True
        return "brought"


@pytest.fixture(scope="module", params=WORLDS)
def served(request: pytest.FixtureRequest) -> Iterator[tuple[Any, RemoteEnvironment]]:
    variables = {"MAX_CONCURRENT_ENVS": str(SLOTS)}
    launcher = LocalProcess(request.param, env_vars=variables, ready_timeout_s=60)
    url = io_thread().call(launcher.start())
    yield find_world(request.param), RemoteEnvironment(url)
    io_thread().call(launcher.stop())


def test_tools_look_the_same_to_a_model(served: tuple[Any, RemoteEnvironment]):
    world, remote = served
    here, there = prepare(world.factory), prepare(remote)
    assert there.tools.schemas == here.tools.schemas
    assert there.name == here.name
    assert there.has_reward == here.has_reward


@pytest.mark.report("P091")
async def test_episodes_are_the_same(served: tuple[Any, RemoteEnvironment]):
    world, remote = served
    here, there = prepare(world.factory), prepare(remote)
    for seed, row in enumerate(world.tasks(3, 6)):
        player = list(world.policies.values())[seed % len(world.policies)]
        actions = await record(player, here, row, seed)
        assert await replay(there, row, actions) == await replay(here, row, actions)


async def record(policy: Any, kind: Any, row: dict[str, Any], seed: int) -> list[Any]:
    """What a player does in the world, followed by what a model might do wrong."""
    env, rng, actions = kind.construct().instance, random.Random(seed), []
    last = await call_reset(env, row) or ""
    tools = kind.tools.bind(env)
    name = kind.tools.names[0]
    actions += [(name, {}), (name, {"nonsense": 1}), ("no_such_tool", {})]
    while not is_done(env) and len(actions) < 20:
        action = policy(env, last, rng)
        if action is None:
            break
        actions.append((action.tool, action.arguments))
        last = str((await tools.call(action.tool, action.arguments)).content)
    return [*actions, actions[-1]]


async def replay(kind: Any, row: dict[str, Any], actions: list[Any]) -> list[Any]:
    env = kind.construct().instance
    tools = kind.tools.bind(env)
    told: list[Any] = [await call_reset(env, row)]
    for name, arguments in actions:
        told += [await tools.call(name, arguments), is_done(env) and hasattr(env, "done")]
    told += [await call_rewards(env, kind.name), metrics(env)]
    await close(env)
    return told


async def test_faults_and_victories_are_the_same():
    launcher = LocalProcess(f"{__file__}:Courier", ready_timeout_s=60)
    url = io_thread().call(launcher.start())
    try:
        assert await brought(RemoteEnvironment(url)) == await brought(Courier)
    finally:
        io_thread().call(launcher.stop())


async def brought(factory: Any) -> list[Any]:
    kind = prepare(factory)
    env = kind.construct().instance
    tools = kind.tools.bind(env)
    told: list[Any] = [await call_reset(env, {}), env.won]
    with pytest.raises(InfrastructureFault):
        await tools.call("bring", {"over_bridge": True})
    await call_reset(env, {})
    told += [await tools.call("bring", {"over_bridge": False}), env.won]
    told += [await call_reset(env, {}), env.won]
    await close(env)
    return told


@pytest.mark.report("P089")
async def test_more_episodes_than_slots_wait_for_their_turn(
    served: tuple[Any, RemoteEnvironment],
):
    world, remote = served
    kind = prepare(remote)

    async def play(row: dict[str, Any]) -> float | None:
        env = kind.construct().instance
        await call_reset(env, row)
        rewards = await call_rewards(env, kind.name)
        await close(env)
        return sum(value or 0.0 for value in rewards.values())

    rewards = await asyncio.gather(*(play(row) for row in world.tasks(0, 3 * SLOTS)))
    assert len(rewards) == 3 * SLOTS
