"""The client on a server of the official package: plain OpenEnv, over a real socket."""

import asyncio
import dataclasses
import json
import threading

import pytest

from corral.serve.client import (
    ActionError,
    CapacityError,
    ClientClosedError,
    EnvClient,
    ExecutionError,
    MessageTooLargeError,
    RequestTimeoutError,
    ServerUnreachableError,
    SessionLostError,
    StepResult,
)
from corral.serve.ports import free_port
from support.client_worlds import CountAction, CountObservation, State

from .conftest import official


class CounterEnv(EnvClient[CountAction, CountObservation, State]):
    action_type = CountAction
    observation_type = CountObservation
    state_type = State


@pytest.mark.report("P094")
async def test_an_episode_in_dicts(counter: str):
    async with EnvClient(counter) as env:
        result = await env.reset(seed=7, episode_id="e", start=3, level="hard")
        assert result == StepResult(
            {"text": "ready ['level']", "count": 3, "filler": "", "metadata": {"seed": 7}},
            None,
            False,
            {"seed": 7},
        )
        result = await env.step({"text": "hi"})
        assert (result.observation["text"], result.observation["count"]) == ("hi", 4)
        assert (result.reward, result.done, result.metadata) == (0.25, False, None)
        assert await env.state() == {"episode_id": "e", "step_count": 1}
        assert not env.is_resumable


async def test_an_episode_in_types(counter: str):
    async with CounterEnv(counter) as env:
        assert isinstance((await env.reset()).observation, CountObservation)
        result = await env.step(CountAction(text="hi"))
        assert result.observation.count == 1
        assert result.observation.reward == 0.25
        assert (await env.state()).step_count == 1


class HookedEnv(EnvClient):
    """As clients written for the official package are."""

    def _step_payload(self, action: str) -> dict:
        return {"text": action.upper()}

    def _parse_result(self, payload: dict) -> StepResult:
        return StepResult(payload["observation"]["text"], payload["reward"], payload["done"])

    def _parse_state(self, payload: dict) -> int:
        return payload["step_count"]


def test_hooks_of_a_subclass_and_blocking_calls_without_a_loop(counter: str):
    env = HookedEnv(base_url=counter)
    try:
        env.reset()
        assert env.step("hi") == StepResult("HI", 0.25, False)
        assert env.state() == 1
    finally:
        env.close()


@pytest.mark.report("P092")
async def test_blocking_calls_inside_a_running_loop(counter: str):
    with CounterEnv(counter).sync() as env:
        assert env.reset(start=5).observation.count == 5
        assert env.step(CountAction(text="x")).observation.count == 6


@pytest.mark.report("P092")
def test_one_client_from_one_event_loop_after_another(counter: str):
    env = EnvClient(counter)

    async def step() -> int:
        return (await env.step({"text": "x"})).observation["count"]

    env.sync().reset()
    assert [asyncio.run(step()) for _ in range(3)] == [1, 2, 3]
    env.close()


@pytest.mark.report("P092")
def test_one_client_from_several_threads_never_mixes_answers(counter: str):
    env = EnvClient(counter).sync()
    env.reset()
    wrong: list[str] = []

    def work(name: str) -> None:
        for turn in range(20):
            said = f"{name} {turn}"
            if env.step({"text": said}).observation["text"] != said:
                wrong.append(said)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert env.state()["step_count"] == 80
    env.close()


async def test_concurrent_calls_are_serialised(counter: str):
    async with EnvClient(counter) as env:
        await env.reset()
        results = await asyncio.gather(
            *(env.step({"text": str(n)}) for n in range(20)), env.state()
        )
        assert [result.observation["text"] for result in results[:20]] == [
            str(n) for n in range(20)
        ]


async def test_errors_have_code_message_and_list_and_leave_the_session(counter: str):
    async with EnvClient(counter) as env:
        await env.reset()
        with pytest.raises(ActionError, match="VALIDATION_ERROR") as caught:
            await env.step({"text": ""})
        assert caught.value.code == "VALIDATION_ERROR"
        assert caught.value.message == "Invalid message"
        assert caught.value.errors[0]["type"] == "string_too_short"
        with pytest.raises(ExecutionError, match="told to fail"):
            await env.step({"text": "x", "fails": True})
        assert (await env.step({"text": "y"})).observation["count"] == 1


@pytest.mark.report("P086")
async def test_a_late_answer_reaches_nobody(counter: str):
    async with EnvClient(counter) as env:
        await env.reset()
        with pytest.raises(RequestTimeoutError):
            await env.step({"text": "late", "sleep_s": 1.0}, timeout_s=0.2)
        with pytest.raises(SessionLostError, match="RequestTimeoutError"):
            await env.step({"text": "next"})
        assert (await env.reset(start=10)).observation["count"] == 10
        assert (await env.step({"text": "after"})).observation["text"] == "after"


async def test_a_cancelled_call_is_as_good_as_a_late_one(counter: str):
    async with EnvClient(counter) as env:
        await env.reset()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await env.step({"text": "late", "sleep_s": 1.0})
        with pytest.raises(SessionLostError):
            await env.step({"text": "next"})
        await env.reset()
        assert (await env.step({"text": "after"})).observation["text"] == "after"


async def test_large_observations_arrive_and_too_large_ones_are_told(counter: str):
    async with EnvClient(counter) as env:
        await env.reset()
        result = await env.step({"text": "x", "size": 20_000_000})
        assert len(result.observation["filler"]) == 20_000_000
    async with EnvClient(counter, max_message_size_mb=1) as env:
        await env.reset()
        with pytest.raises(MessageTooLargeError, match="max_message_size_mb"):
            await env.step({"text": "x", "size": 2_000_000})
        with pytest.raises(SessionLostError):
            await env.state()


async def test_a_request_too_large_for_the_server_is_told(counter: str):
    async with EnvClient(counter) as env:
        await env.reset()
        with pytest.raises(MessageTooLargeError, match="than the server accepts"):
            await env.step({"text": "x" * 17_000_000})


async def test_close_is_idempotent_frees_the_slot_and_is_final():
    with official("counter", capacity=1) as url:
        first = EnvClient(url)
        await first.reset()
        with pytest.raises(CapacityError, match="1/1") as caught:
            await EnvClient(url, queue_timeout_s=0).reset()
        assert (caught.value.active_sessions, caught.value.max_sessions) == (1, 1)
        waiting = asyncio.create_task(_reset_once(url))
        await asyncio.sleep(0.3)
        await first.close()
        await first.close()
        assert (await waiting).observation["count"] == 0
        with pytest.raises(ClientClosedError, match="Make another one"):
            await first.reset()
        # A client that is forgotten frees its slot as well.
        forgotten = EnvClient(url)
        await forgotten.reset()
        del forgotten
        assert (await _reset_once(url)).observation["count"] == 0


async def _reset_once(url: str) -> StepResult:
    async with EnvClient(url, queue_timeout_s=10) as env:
        return await env.reset()


async def test_a_restarted_server_is_a_lost_session_until_reset():
    port = free_port()
    with official("counter", port=port) as url:
        env = EnvClient(url)
        await env.reset()
        await env.step({"text": "x"})
    with pytest.raises(SessionLostError, match="reset"):
        await env.step({"text": "y"})
    with pytest.raises(ServerUnreachableError):
        await env.reset()
    with official("counter", port=port):
        for _ in range(2):
            with pytest.raises(SessionLostError):
                await env.step({"text": "y"})
            with pytest.raises(SessionLostError):
                await env.state()
        assert (await env.reset(start=2)).observation["count"] == 2
        assert (await env.step({"text": "y"})).observation["count"] == 3
    await env.close()


@pytest.mark.report("P087")
async def test_a_reset_on_a_dead_socket_reconnects():
    port = free_port()
    with official("counter", port=port) as url:
        env = EnvClient(url)
        await env.reset()
    with official("counter", port=port):
        assert (await env.reset(start=4)).observation["count"] == 4
    await env.close()


@pytest.mark.report("P112")
async def test_local_servers_are_reached_without_the_proxy(
    counter: str, monkeypatch: pytest.MonkeyPatch
):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with EnvClient(counter) as env:
        assert (await env.reset()).observation["count"] == 0


async def test_arguments_that_are_no_json_are_refused_before_anything_is_sent(counter: str):
    async with EnvClient(counter) as env:
        await env.reset()
        with pytest.raises(ValueError, match="cannot be written as JSON"):
            await env.step({"text": object()})
        with pytest.raises(ValueError, match="cannot be written as JSON"):
            await env.step({"text": float("nan")})
        assert (await env.step({"text": "y"})).observation["count"] == 1


def test_results_can_be_kept_as_json(counter: str):
    with EnvClient(counter).sync() as env:
        json.dumps(dataclasses.asdict(env.reset()))
