"""Episodes with a scripted model: in-process, through a server, and when the server is lost."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from corral.chat.format import ChatFormat
from corral.env import prepare
from corral.env.io_thread import io_thread
from corral.env.signatures import ToolSpec, method_of
from corral.records import Episode, Outcome
from corral.rollout import attempts
from corral.rollout.limits import Limits
from corral.serve.client import ClientOptions
from corral.serve.client.launchers import LocalProcess
from corral.serve.client.remote import RemoteEnvironment, ServedWorld
from corral.serve.client.remote_tools import RemoteTool, RemoteWorld
from corral.worlds.guess_number import GuessNumber
from support.scripted_peer import Peer, ScriptedPeer
from unit.rollout.conftest import TOKENIZER, Table, call


@pytest.fixture(scope="module")
def table() -> Table:
    return Table(ChatFormat.for_tokenizer(TOKENIZER))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def guess_number() -> Iterator[str]:
    launcher = LocalProcess("guess_number", ready_timeout_s=60)
    yield io_thread().call(launcher.start())
    io_thread().call(launcher.stop())


SAID = (
    call("guess", n=10),
    call("guess", n="fifteen"),
    call("guess", wrong=1),
    call("look"),
    call("guess", n=15),
    call("guess", n=13) + call("guess", n=12),
    call("guess", n=13),
    "I found it.",
)


async def episodes(table: Table, factory: Any, **options: Any) -> list[Episode]:
    player = table.player(*SAID, factory=factory, limits=Limits(episode_tokens=9000), **options)
    tasks = [table.task(index, secret=13 + index % 2) for index in range(3)]
    groups = await player.play(tasks, 4)
    await player.aclose()
    return [episode for group in groups for episode in group.group.episodes]


@pytest.mark.parametrize("stop_when_done", [False, True])
async def test_transcripts_and_rewards_are_those_of_the_world_in_process(
    table: Table, guess_number: str, stop_when_done: bool
):
    here = await episodes(table, GuessNumber, stop_when_done=stop_when_done)
    there = await episodes(table, RemoteEnvironment(guess_number), stop_when_done=stop_when_done)
    assert len(there) == 12
    for mine, served in zip(here, there, strict=True):
        assert served.transcript == mine.transcript
        assert served.messages == mine.messages
        assert served.rewards == mine.rewards
        assert served.outcome == mine.outcome
        assert served.tools == mine.tools
        assert served.metrics == mine.metrics
    assert {episode.rewards["GuessNumber"] for episode in there} != {0.0}


def test_one_player_from_one_event_loop_after_another(table: Table, guess_number: str):
    player = table.player(*SAID, factory=RemoteEnvironment(guess_number))
    first = asyncio.run(player.play([table.task(0, secret=13)], 2))
    second = asyncio.run(player.play([table.task(0, secret=13)], 2))
    asyncio.run(player.aclose())
    rewards = [
        episode.rewards
        for groups in (first, second)
        for group in groups
        for episode in group.group.episodes
    ]
    assert rewards[:2] == rewards[2:]


def world_of(url: str) -> type[ServedWorld]:
    """A world of one tool on a server that cannot say what it offers."""
    spec = ToolSpec(name="act", description="Act.", parameters={}, returns=None)
    tool = RemoteTool(spec=spec, remote_name="act")

    async def act(self: ServedWorld, arguments: dict[str, Any]) -> Any:
        return await self._call(tool, arguments)

    members: dict[str, Any] = {
        "_world": RemoteWorld(name="W", tools=(tool,), style="typed"),
        "_base_url": url,
        "_options": ClientOptions(queue_timeout_s=0, close_timeout_s=0.2),
        "_show": staticmethod(lambda seen: seen["text"]),
        "act": method_of(spec, act),
    }
    return type("W", (ServedWorld,), members)


async def test_an_episode_whose_session_is_lost_is_played_again(
    table: Table, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(attempts, "FIRST_PAUSE_S", 0.0)

    async def handler(peer: Peer, number: int) -> None:
        await peer.answer("begin")
        if number < 2:
            await peer.read()
            peer.cut()
        else:
            await peer.read()
            await peer.observe("acted", reward=0.5, done=True)
            await peer.read()

    with ScriptedPeer(handler, subprotocols=()) as server:
        kinds = {None: prepare(world_of(server.url))}
        player = table.player(call("act"), "Done.", kinds=kinds)
        (group,) = await player.play([table.task()], 1)
        (episode,) = group.group.episodes
        assert episode.outcome is Outcome.FINISHED
        assert episode.rewards == {"W": 0.5}
        await player.aclose()
        assert server.connections == 3


@pytest.mark.report("P087")
async def test_an_episode_that_is_lost_again_and_again_has_no_reward(
    table: Table, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(attempts, "FIRST_PAUSE_S", 0.0)

    async def handler(peer: Peer, number: int) -> None:
        await peer.answer("begin")
        await peer.read()
        if number < 1:
            await peer.observe("acted", reward=0.5)
            await peer.read()
            return
        peer.cut()

    with ScriptedPeer(handler, subprotocols=()) as server:
        kinds = {None: prepare(world_of(server.url))}
        player = table.player(call("act"), "Done.", kinds=kinds, max_concurrent=1)
        (group,) = await player.play([table.task()], 2)
        good, lost = group.group.episodes
        assert good.rewards == {"W": 0.5}
        assert lost.outcome is Outcome.INFRASTRUCTURE_FAULT
        assert lost.rewards == {}
        await player.aclose()
