"""Sessions over a network that cuts, stalls, loses, repeats and reorders, to a Corral server."""

import asyncio
import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.env.io_thread import io_thread
from corral.serve.client import ClientOptions, EnvClient, SessionLostError
from corral.serve.client.launchers import LocalProcess
from support.chaos_proxy import Chaos, ChaosProxy

SESSIONS, STEPS = 16, 40

# The proxy is stopped in the midst of handshakes, whose sockets are then left to be collected.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    yield
    gc.collect()


TALLY = '''
class Tally:
    """Adds up."""

    REPLAYABLE = {is_replayable}

    def reset(self, start: int, **kwargs) -> str:
        self.total, self.calls = start, 0
        return f"at {{start}}"

    def add(self, n: int) -> str:
        """Add.

        Args:
            n: What to add.
        """
        self.calls += 1
        self.total = (self.total * 31 + n) % 1_000_003
        return f"{{self.calls}}: {{self.total}}"
'''


def serve(folder: Path, *, is_replayable: bool) -> tuple[LocalProcess, str]:
    (folder / "tally.py").write_text(TALLY.format(is_replayable=is_replayable))
    launcher = LocalProcess(
        f"{folder}/tally.py:Tally",
        env_vars={"MAX_CONCURRENT_ENVS": str(SESSIONS)},
        ready_timeout_s=60,
    )
    return launcher, io_thread().call(launcher.start())


@pytest.fixture(scope="module")
def tally(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    launcher, url = serve(tmp_path_factory.mktemp("tally"), is_replayable=False)
    yield url
    io_thread().call(launcher.stop())


def expected(start: int) -> list[str]:
    total, told = start, [f"at {start}"]
    for n in range(STEPS):
        total = (total * 31 + n) % 1_000_003
        told.append(f"{n + 1}: {total}")
    return told


def add(n: int) -> dict[str, Any]:
    return {"type": "call_tool", "tool_name": "add", "arguments": {"n": n}}


async def play(url: str, start: int, options: ClientOptions) -> list[str]:
    async with EnvClient(url, options=options) as env:
        told = [(await env.reset(start=start)).observation["result"]]
        for n in range(STEPS):
            told.append((await env.step(add(n))).observation["result"])
        return told


OPTIONS = ClientOptions(
    retransmit_after_s=0.3,
    liveness_timeout_s=1.0,
    connect_timeout_s=5.0,
    message_timeout_s=60.0,
    close_timeout_s=1.0,
)

MISFORTUNES = {
    "cuts": Chaos(cut=0.03),
    "losses": Chaos(drop=0.03),
    "duplicates": Chaos(duplicate=0.2),
    "disorder": Chaos(late=0.1, duplicate=0.1),
    "stalls": Chaos(stall=0.02, stall_s=0.6),
    "half-open": Chaos(half_open=0.005),
    "all": Chaos(
        cut=0.01, drop=0.01, duplicate=0.05, late=0.05, stall=0.005, half_open=0.002, seed=7
    ),
}


@pytest.mark.parametrize("name", MISFORTUNES)
async def test_every_episode_is_the_undisturbed_one(name: str, tally: str):
    chaos = MISFORTUNES[name]
    async with ChaosProxy(tally, chaos) as url:
        episodes = await asyncio.gather(*(play(url, start, OPTIONS) for start in range(SESSIONS)))
    assert [json.dumps(told) for told in episodes] == [
        json.dumps(expected(start)) for start in range(SESSIONS)
    ]
    assert sum(chaos.struck.values()) > 0


@pytest.mark.report("P088")
@pytest.mark.stress
async def test_no_slot_is_left_behind(tally: str):
    async with ChaosProxy(tally, Chaos(cut=0.02, duplicate=0.1)) as url:
        await asyncio.gather(*(play(url, start, OPTIONS) for start in range(SESSIONS)))
    # All slots at once: none is held by a session of before.
    patient = ClientOptions(queue_timeout_s=10)
    clients = [EnvClient(tally, options=patient) for _ in range(SESSIONS)]
    await asyncio.gather(*(env.reset(start=0) for env in clients))
    await asyncio.gather(*(env.close() for env in clients))


@pytest.mark.stress
async def test_without_resume_every_loss_is_told(tally: str):
    plain = ClientOptions(offers_resume=False, message_timeout_s=5.0)
    chaos = Chaos(cut=0.05, seed=3)
    lost = 0

    async def careful(url: str, start: int) -> None:
        nonlocal lost
        try:
            assert await play(url, start, plain) == expected(start)
        except SessionLostError:
            lost += 1

    async with ChaosProxy(tally, chaos) as url:
        await asyncio.gather(*(careful(url, start) for start in range(SESSIONS)))
    assert lost > 0


@pytest.mark.parametrize("is_replayable", [True, False])
async def test_a_restarted_server_is_replayed_or_a_lost_session(
    is_replayable: bool, tmp_path: Path
):
    launcher, url = await asyncio.to_thread(lambda: serve(tmp_path, is_replayable=is_replayable))
    again = LocalProcess(
        f"{tmp_path}/tally.py:Tally", port=int(url.rpartition(":")[2]), ready_timeout_s=60
    )
    env = EnvClient(url, options=OPTIONS)
    told = [(await env.reset(start=5)).observation["result"]]
    told += [(await env.step(add(n))).observation["result"] for n in range(10)]
    await io_thread().run(launcher.stop())
    restart = asyncio.create_task(io_thread().run(again.start()))
    try:
        if is_replayable:
            told += [(await env.step(add(n))).observation["result"] for n in range(10, STEPS)]
            assert told == expected(5)
        else:
            with pytest.raises(SessionLostError):
                await env.step(add(10))
            assert (await env.reset(start=7)).observation["result"] == "at 7"
    finally:
        await env.close()
        await restart
        await io_thread().run(again.stop())
