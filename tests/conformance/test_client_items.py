"""Items 24 to 36 of the client's checklist: Corral's client on servers of the official package."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from corral.serve.client import (
    ActionError,
    CapacityError,
    ClientOptions,
    EnvClient,
    ExecutionError,
    MCPToolClient,
    RequestTimeoutError,
    SessionLostError,
    ToolCallError,
    address_of,
)
from support.chaos import ChaosProxy, Plan
from support.server_process import ServerProcess, served

Client = EnvClient[dict[str, Any], dict[str, Any], dict[str, Any]]
HI = {"message": "hi"}


@pytest.fixture(scope="module")
def official() -> Iterator[ServerProcess]:
    with served("official", "probe", "--sessions", "4") as server:
        yield server


@pytest.fixture(scope="module")
def single() -> Iterator[ServerProcess]:
    with served("official", "probe", "--sessions", "1") as server:
        yield server


@asynccontextmanager
async def scripted_server(*answers: str):
    """Answers the n-th frame with the n-th text; says what it was sent, and with which headers."""
    heard: list[Any] = []

    async def play(socket: ServerConnection) -> None:
        assert socket.request is not None
        heard.append((socket.request.path, dict(socket.request.headers.raw_items())))
        try:
            for answer in answers:
                heard.append(json.loads(await socket.recv()))
                await socket.send(answer)
            async with asyncio.timeout(None) as patience:
                async for text in socket:
                    heard.append(json.loads(text))
                    if heard[-1]["type"] == "close":  # a second one would still be heard
                        patience.reschedule(asyncio.get_running_loop().time() + 0.2)
        except (ConnectionClosed, TimeoutError):
            pass

    async with serve(play, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heard


def observed(observation: dict[str, Any], **envelope: Any) -> str:
    return json.dumps({"type": "observation", "data": {"observation": observation, **envelope}})


@pytest.mark.parametrize(
    ("base_url", "socket_url"),
    [
        ("http://host:1", "ws://host:1/ws"),
        ("http://host:1/", "ws://host:1/ws"),
        ("https://host", "wss://host/ws"),
        ("ws://host:1", "ws://host:1/ws"),
        ("wss://host/", "wss://host/ws"),
        ("https://host/prefix", "wss://host/prefix/ws"),
        ("https://host/prefix/", "wss://host/prefix/ws"),
    ],
)
def test_item_24_address(base_url: str, socket_url: str) -> None:
    assert address_of(base_url).websocket("/ws") == socket_url


async def test_item_24_headers_and_prefix_are_sent() -> None:
    async with scripted_server(observed({}, reward=None, done=False)) as (url, heard):
        async with Client(f"{url}/prefix/", headers={"X-Who": "me"}) as env:
            await env.reset()
        path, headers = heard[0]
        assert (path, headers["X-Who"]) == ("/prefix/ws", "me")


async def test_item_25_sends_only_allowed_keys() -> None:
    answers = [observed({}, reward=None, done=False)] * 3
    async with scripted_server(*answers) as (url, heard):
        async with Client(url) as env:
            await env.reset()
            await env.reset(seed=3)
            await env.step(HI)
        frames = heard[1:]
    assert [frame for frame in frames if frame["type"] == "close"] == [{"type": "close"}]
    assert frames[0] in ({"type": "reset"}, {"type": "reset", "data": {}})
    assert frames[1:3] == [{"type": "reset", "data": {"seed": 3}}, {"type": "step", "data": HI}]


@pytest.mark.report("P094")
@pytest.mark.parametrize("reward", [None, True, 3, 0.5])
async def test_item_26_rewards_and_metadata_of_every_kind(reward: Any) -> None:
    answers = [
        observed({"n": 1}, reward=reward, done=False),
        observed({"n": 2, "metadata": {}}, reward=reward, done=True, metadata=None, extra=1),
    ]
    async with scripted_server(*answers) as (url, _), Client(url) as env:
        first, second = await env.reset(), await env.step(HI)
    assert first.reward is reward or first.reward == reward
    assert type(first.reward) is type(reward)
    assert (first.observation, first.metadata) == ({"n": 1}, None)
    assert (second.observation["n"], second.done, second.metadata) == (2, True, None)


async def test_item_27_typed_errors_leave_the_session(official: ServerProcess) -> None:
    async with Client(official.url) as env:
        await env.reset()
        with pytest.raises(ActionError) as invalid:
            await env.step({"message": ""})
        assert (invalid.value.code, invalid.value.message) == (
            "VALIDATION_ERROR",
            "Invalid message",
        )
        assert invalid.value.errors[0]["loc"] == ["message"]
        with pytest.raises(ExecutionError) as failed:
            await env.step({"message": "boom"})
        assert failed.value.code == "EXECUTION_ERROR"
        assert (await env.step(HI)).observation["step"] == 1


async def test_item_27_the_other_codes_that_leave_the_session() -> None:
    answers = [
        observed({}, reward=None, done=False),
        *(
            json.dumps({"type": "error", "data": {"code": code, "message": "m"}})
            for code in ("INVALID_JSON", "UNKNOWN_TYPE")
        ),
        observed({"n": 9}, reward=None, done=False),
    ]
    async with scripted_server(*answers) as (url, _), Client(url) as env:
        await env.reset()
        for code in ("INVALID_JSON", "UNKNOWN_TYPE"):
            with pytest.raises(RuntimeError, match=code):
                await env.step(HI)
        assert (await env.step(HI)).observation == {"n": 9}


async def test_item_28_a_full_server_is_told_with_both_numbers(single: ServerProcess) -> None:
    async with Client(single.url) as first:
        await first.reset()
        with pytest.raises(CapacityError) as full:
            await Client(single.url, queue_timeout_s=0).reset()
        assert (full.value.active_sessions, full.value.max_sessions) == (1, 1)
        waiting = asyncio.create_task(_reset(single.url, queue_timeout_s=20.0))
        await asyncio.sleep(0.3)
        assert not waiting.done()
    await waiting


async def test_item_29_large_frames_arrive(official: ServerProcess) -> None:
    async with Client(official.url) as env:
        await env.reset()
        result = await env.step({"message": "large"})
        assert len(result.observation["echoed"]) == 20_000_000


async def test_item_29_pings_are_answered_and_its_own_can_be_switched_off() -> None:
    pongs: list[bool] = []

    async def play(socket: ServerConnection) -> None:
        await socket.recv()
        pong = await socket.ping()
        done, _ = await asyncio.wait([asyncio.ensure_future(pong)], timeout=5.0)
        pongs.append(bool(done))
        await socket.send(observed({}, reward=None, done=False))
        await socket.wait_closed()

    async with serve(play, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with Client(url, websocket_ping_interval_s=None) as env:
            await env.reset()
    assert pongs == [True]


@pytest.mark.report("P109")
async def test_item_29_a_peer_that_answers_no_ping_is_lost(official: ServerProcess) -> None:
    proxy = ChaosProxy(
        upstream=official.url.replace("http", "ws", 1), plan=Plan(seed=1, half_open=1.0)
    )
    options = ClientOptions(ping_interval_s=0.5, ping_timeout_s=0.5)
    proxy.is_calm = True
    async with proxy.running(), Client(proxy.url, options=options) as env:
        await env.reset()
        proxy.is_calm = False
        with pytest.raises(SessionLostError):
            await env.step(HI)


async def test_item_30_a_lost_session_is_never_swapped(single: ServerProcess) -> None:
    env = Client(single.url)
    await env.reset()
    single.kill()
    single.start()
    for _ in range(2):
        with pytest.raises(SessionLostError):
            await env.step(HI)
        with pytest.raises(SessionLostError):
            await env.state()
    await env.reset()
    assert (await env.step(HI)).observation["step"] == 1
    await env.close()


async def test_item_31_a_late_answer_reaches_nobody(official: ServerProcess) -> None:
    async with Client(official.url, message_timeout_s=0.5) as env:
        await env.reset()
        with pytest.raises(RequestTimeoutError):
            await env.step({"message": "slow 1.5"})
        with pytest.raises(SessionLostError):
            await env.step({"message": "next"})
        await env.reset()
        task = asyncio.create_task(env.step({"message": "slow 1.0"}, timeout_s=10.0))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(SessionLostError):
            await env.state()
        await env.reset()
        assert (await env.step({"message": "own"})).observation["echoed"] == "own"


async def test_item_32_concurrent_calls_are_never_mixed(official: ServerProcess) -> None:
    async with Client(official.url) as env:
        await env.reset()
        said = [f"message {n}" for n in range(30)]
        results = await asyncio.gather(*(env.step({"message": text}) for text in said))
        assert [result.observation["echoed"] for result in results] == said
        assert [result.observation["step"] for result in results] == list(range(1, 31))


async def test_item_33_close_says_good_bye_once_and_frees_the_slot(single: ServerProcess) -> None:
    async with scripted_server(observed({}, reward=None, done=False)) as (url, heard):
        env = Client(url)
        await env.reset()
        await env.close()
        await env.close()
        await asyncio.sleep(0.1)
        assert [frame for frame in heard[2:] if frame == {"type": "close"}] == [{"type": "close"}]
    for _ in range(3):
        await _reset(single.url, queue_timeout_s=5.0)


async def test_item_33_a_provider_is_stopped_also_after_a_failure() -> None:
    class Provider:
        stopped = 0

        async def start(self) -> str:
            return "http://127.0.0.1:9"

        async def stop(self) -> None:
            self.stopped += 1

    provider = Provider()
    env = Client(provider=provider)
    with pytest.raises(ConnectionError):
        await env.reset()
    await env.close()
    assert provider.stopped == 1


async def test_item_34_blocking_calls_in_a_running_loop_and_from_threads(
    official: ServerProcess,
) -> None:
    with Client(official.url).sync() as env:
        env.reset()
        wrong: list[str] = []

        def work(name: str) -> None:
            for turn in range(10):
                text = f"{name}{turn}"
                if env.step({"message": text}).observation["echoed"] != text:
                    wrong.append(text)

        threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert env.state()["step_count"] == 30


def test_item_34_the_interpreter_ends_with_a_client_open(
    single: ServerProcess, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from corral.serve.client import EnvClient\n"
        f"env = EnvClient({single.url!r}).sync()\n"
        "env.reset()\n"
        "print(env.step({'message': 'hi'}).reward)\n"
    )
    for _ in range(2):  # the second one needs the slot of the first
        ran = subprocess.run(
            [sys.executable, str(program)], capture_output=True, text=True, timeout=60
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "0.2\n", "")


async def _reset(url: str, *, queue_timeout_s: float) -> None:
    async with Client(url, queue_timeout_s=queue_timeout_s) as env:
        await env.reset()


async def test_item_35_tools_of_an_official_server() -> None:
    with served("official", "tools", "--sessions", "1") as server:
        for _ in range(2):  # the second session needs the slot of the first
            async with MCPToolClient(server.url) as env:
                await env.reset(episode_id="m")
                tools = {tool.name: tool for tool in await env.list_tools()}
                assert set(tools) == {"add", "remember", "boom"}
                assert tools["add"].description == "Add two numbers."
                assert set(tools["add"].input_schema["properties"]) == {"a", "b"}
                assert await env.call_tool("add", a=2, b=3) == 5
                assert [await env.call_tool("remember", text="x") for _ in range(2)] == [1, 2]
                with pytest.raises(ToolCallError, match="boom"):
                    await env.call_tool("boom")
                with pytest.raises(ToolCallError, match="no_such_tool"):
                    await env.call_tool("no_such_tool")
                assert (await env.state())["episode_id"] == "m"


async def test_item_36_echo_over_mcp_and_typed(official: ServerProcess) -> None:
    async with Client(official.url) as env:
        assert (await env.reset(seed=3)).metadata == {"seed": 3}
        for turn in range(1, 4):
            assert (await env.step({"message": "echo"})).observation["step"] == turn
        assert (await env.state())["step_count"] == 3
