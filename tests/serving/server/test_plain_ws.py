"""``/ws`` as OpenEnv clients know it: frames, codes, and what ends a session."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from corral.env import tools_of
from corral.serve import create_app
from corral.worlds.guess_number import GuessNumber
from support.serve_sessions import Awkward, Do, Loose, Seen, peer, until
from support.served_app import served


def _app(world: type[Awkward] = Awkward, **options):
    return create_app(world, Do, Seen, **options)


each_kind_of_thread = pytest.mark.parametrize("world", [Awkward, Loose])


async def test_an_episode_has_openenvs_frames() -> None:
    async with served(_app()) as address, peer(address) as client:
        answer = await client.ask("reset", {"seed": 3, "episode_id": "e7"})
        assert answer["type"] == "observation"
        assert answer["data"].keys() == {"observation", "reward", "done"}
        assert answer["data"]["observation"]["count"] == 3
        assert answer["data"]["observation"].keys() == {"metadata", "count", "thread", "big"}
        step = await client.ask("step", {"what": "end"})
        assert (step["data"]["reward"], step["data"]["done"]) == (1.0, True)
        state = await client.ask("state")
        assert (state["data"]["episode_id"], state["data"]["step_count"]) == ("e7", 4)
        await client.send("close")
        assert await client.closed() == 1000


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{not json", "INVALID_JSON"),
        ('{"type": "step", "data": {"value": NaN}}', "INVALID_JSON"),
        ("[" * 10_000, "INVALID_JSON"),
        ('{"type": "nope"}', "UNKNOWN_TYPE"),
        ('{"type": ["step"]}', "UNKNOWN_TYPE"),
        ('{"foo": 1}', "UNKNOWN_TYPE"),
        ('{"type": "step"}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": null}', "VALIDATION_ERROR"),
        ('{"type": "step", "data": {}, "timeout_s": 3}', "VALIDATION_ERROR"),
        ('{"type": "step", "data": {"wrong": 3}}', "VALIDATION_ERROR"),
        ('{"type": "state", "data": {}}', "VALIDATION_ERROR"),
    ],
)
@pytest.mark.report("P084")
async def test_a_bad_frame_costs_no_session(text: str, code: str) -> None:
    async with served(_app()) as address, peer(address) as client:
        await client.ask("reset", {"seed": 5})
        await client.socket.send(text)
        error = await client.read()
        assert (error["type"], error["data"]["code"]) == ("error", code)
        if code == "VALIDATION_ERROR":
            assert error["data"]["message"] == "Invalid message"
            assert {"type", "loc", "msg"} <= error["data"]["errors"][0].keys()
        assert (await client.ask("step", {}))["data"]["observation"]["count"] == 6


@pytest.mark.parametrize("frame", [b"\x00", "[1, 2]", "3"])
async def test_what_is_no_object_ends_the_session(frame: bytes | str) -> None:
    async with served(_app()) as address, peer(address) as client:
        await client.socket.send(frame)
        assert (await client.read())["data"]["code"] == "SESSION_ERROR"
        assert await client.closed() == 1000


@each_kind_of_thread
@pytest.mark.parametrize("what", ["raise", "exit", "nothing"])
async def test_a_failing_step_tells_no_internals_and_keeps_the_session(
    what: str, world: type[Awkward], caplog
) -> None:
    async with served(_app(world)) as address, peer(address) as client:
        await client.ask("reset", {})
        error = (await client.ask("step", {"what": what}))["data"]
        assert error["code"] == "EXECUTION_ERROR"
        assert "hunter2" not in json.dumps(error)
        assert error["error_id"] in caplog.text
        assert (await client.ask("step", {}))["data"]["observation"]["count"] == 2


async def test_debug_servers_tell_what_was_raised() -> None:
    async with served(_app(is_debug=True)) as address, peer(address) as client:
        error = await client.ask("step", {"what": "raise"})
        assert "ValueError: the token is hunter2" in error["data"]["message"]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
async def test_a_reward_that_is_no_number_is_an_error_that_names_it(value: str) -> None:
    async with served(_app()) as address, peer(address) as client:
        error = await client.ask("step", {"what": "reward", "value": value})
        assert error["data"]["code"] == "EXECUTION_ERROR"
        assert value in error["data"]["message"]


@pytest.mark.report("P208")
async def test_hidden_state_is_withheld_until_the_end() -> None:
    async with served(_app()) as address, peer(address) as client:
        await client.ask("reset", {})
        assert "crane" not in json.dumps(await client.ask("state"))
        await client.ask("step", {"what": "end"})
        assert (await client.ask("state"))["data"]["answer"] == "crane"


@pytest.mark.report("P093")
async def test_each_session_lives_in_its_own_thread_and_closes_there_once() -> None:
    Awkward.closed.clear()
    async with served(_app()) as address:
        threads = set()
        for _ in range(4):
            async with peer(address) as client:
                threads.add((await client.ask("reset", {}))["data"]["observation"]["thread"])
                # Both look where they are called; an error is what another thread would get.
                assert (await client.ask("step", {}))["type"] == "observation"
                client.socket.transport.abort()
        await until(lambda: len(Awkward.closed) == 4)
        await asyncio.sleep(0.1)
        assert set(Awkward.closed) == threads
        assert len(Awkward.closed) == 4


@pytest.mark.report("P133")
@each_kind_of_thread
async def test_a_blocking_step_blocks_neither_health_nor_others(world: type[Awkward]) -> None:
    async with (
        served(_app(world)) as address,
        httpx.AsyncClient(base_url=f"http://{address}", trust_env=False) as http,
        peer(address) as slow,
        peer(address) as quick,
    ):
        await slow.send("step", {"what": "block", "value": 1.0})
        started = asyncio.get_running_loop().time()
        assert (await http.get("/health")).json() == {"status": "healthy"}
        assert (await quick.ask("step", {}))["type"] == "observation"
        assert asyncio.get_running_loop().time() - started < 0.8
        assert (await slow.read())["type"] == "observation"


@each_kind_of_thread
async def test_a_hanging_step_costs_its_session_alone_and_frees_the_slot(
    world: type[Awkward],
) -> None:
    app = _app(world, step_timeout_s=0.3, max_concurrent_envs=1, queue_timeout_s=5.0)
    Awkward.released.clear()
    try:
        async with served(app) as address:
            async with peer(address) as client:
                error = await client.ask("step", {"what": "hang"})
                assert error["data"]["code"] == "SESSION_ERROR"
                assert "0.3 s" in error["data"]["message"]
                assert await client.closed() == 1000
            async with peer(address) as client:
                assert (await client.ask("reset", {}))["type"] == "observation"
            Awkward.released.set()
    finally:
        Awkward.released.set()


async def test_a_large_observation_and_a_large_action_pass() -> None:
    async with served(_app()) as address, peer(address) as client:
        answer = await client.ask("step", {"what": "big", "value": 20_000_000})
        assert len(answer["data"]["observation"]["big"]) == 20_000_000
        assert (await client.ask("step", {"value": "y" * 15_000_000}))["type"] == "observation"


@pytest.mark.report("P088")
async def test_an_idle_session_is_told_and_its_socket_closed() -> None:
    assert _app().state.sessions.settings.idle_timeout_s > 0, "for all who do not ask"
    app = _app(idle_timeout_s=0.2, step_timeout_s=30.0)
    async with served(app) as address, peer(address) as client:
        await client.ask("step", {"what": "block", "value": 0.6})  # longer than the limit
        error = await client.read()
        assert error["data"]["code"] == "SESSION_ERROR"
        assert "idle" in error["data"]["message"]
        assert await client.closed() == 1000
        assert app.state.sessions.slots.active_sessions == 0


async def test_a_constructor_that_raises_is_a_factory_error() -> None:
    class Broken(Awkward):
        def __init__(self) -> None:
            raise RuntimeError("secret path")

    app = create_app(Broken, Do, Seen)
    async with served(app) as address, peer(address) as client:
        error = await client.read()
        assert error["data"]["code"] == "FACTORY_ERROR"
        assert error["data"]["factory_name"] == "Broken"
        assert "secret" not in error["data"]["message"]
        assert await client.closed() == 1000
        assert app.state.sessions.slots.active_sessions == 0


async def test_tools_are_played_as_actions_and_reward_comes_at_the_end() -> None:
    async with served(create_app(GuessNumber)) as address, peer(address) as client:
        first = await client.ask("reset", {"secret": 7})
        assert first["data"]["observation"]["result"] == "I picked a number from 1 to 20."
        listed = await client.ask("step", {"type": "list_tools"})
        assert [tool["name"] for tool in listed["data"]["observation"]["tools"]] == ["guess"]
        guess = {"type": "call_tool", "tool_name": "guess"}
        low = await client.ask("step", {**guess, "arguments": {"n": 3}})
        assert (low["data"]["observation"]["result"], low["data"]["reward"]) == ("higher", None)
        assert (await client.ask("state"))["data"].keys() == {"episode_id", "step_count", "done"}
        wrong = await client.ask("step", {**guess, "arguments": {"n": "many"}})
        assert wrong["data"]["observation"]["error"]["error_type"] == "invalid_args"
        unknown = await client.ask("step", {**guess, "tool_name": "peek"})
        assert unknown["data"]["observation"]["error"]["error_type"] == "tool_not_found"
        found = await client.ask("step", {**guess, "arguments": {"n": 7}})
        assert (found["data"]["reward"], found["data"]["done"]) == (0.95, True)


async def test_a_reset_without_columns_plays_one_of_the_worlds_tasks() -> None:
    from corral.worlds.guess_number import tasks

    async with served(create_app(GuessNumber)) as address, peer(address) as client:
        error = await client.ask("reset", {})
        assert error["data"]["errors"][0]["loc"] == ["data", "secret"]
    async with served(create_app(GuessNumber, tasks=tasks)) as address, peer(address) as client:
        answer = await client.ask("reset", {"seed": 4})
        assert answer["data"]["observation"]["prompt"] == "Find the number. "


async def test_data_with_a_type_is_shown_as_it_is_in_process() -> None:
    class Register:
        def reset(self, **row: Any) -> None:
            return None

        def people(self) -> list[dict[str, str]]:
            """List people."""
            return [{"type": "person", "name": "Bob"}]

    inside = await tools_of((), Register).bind(Register()).call("people", {})
    async with served(create_app(Register)) as address, peer(address) as client:
        await client.ask("reset", {})
        answer = await client.ask("step", {"tool_name": "people", "arguments": {}})
    assert answer["data"]["observation"]["result"] == inside.content
    assert inside.content == "[{'type': 'person', 'name': 'Bob'}]"
