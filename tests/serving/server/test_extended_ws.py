"""``corral.v1``: no request is executed twice, and a session outlives its connection."""

import asyncio
import json

import pytest

from corral.serve import create_app
from support.serve_sessions import Awkward, Do, Seen, peer, until
from support.served_app import served


def _app(**options):
    return create_app(Awkward, Do, Seen, **options)


def _count(answer) -> int:
    return answer["data"]["observation"]["count"]


async def test_the_server_greets_with_its_limits() -> None:
    app = _app(max_concurrent_envs=3, lease_s=7.0, step_timeout_s=9.0)
    async with served(app) as address, peer(address, is_extended=True) as client:
        assert client.socket.subprotocol == "corral.v1"
        hello = await client.read()
        assert hello["type"] == "hello"
        expected = {
            "lease_s": 7.0,
            "step_timeout_s": 9.0,
            "max_sessions": 3,
            "active_sessions": 1,
            "is_replayable": False,
        }
        assert hello["data"].items() >= expected.items()


@pytest.mark.report("P107")
async def test_a_repeated_request_is_answered_and_not_executed() -> None:
    async with served(_app()) as address, peer(address, is_extended=True) as client:
        await client.read()
        await client.ask("reset", {}, id=1)
        first = await client.ask("step", {}, id=2)
        assert await client.ask("step", {}, id=2) == first
        await client.send("reset", {}, id=1)  # older: nobody waits for it
        assert _count(await client.ask("step", {}, id=3)) == 2


async def test_a_request_under_way_is_executed_once_and_answered_once() -> None:
    async with served(_app()) as address, peer(address, is_extended=True) as client:
        await client.read()
        for _ in range(3):
            await client.send("step", {"what": "block", "value": 0.3}, id=1)
        assert _count(await client.read()) == 1
        assert (await client.ask("state", id=2))["data"]["step_count"] == 1


async def test_errors_are_answers_too_and_frames_without_an_id_are_not() -> None:
    async with served(_app()) as address, peer(address, is_extended=True) as client:
        await client.read()
        wrong = await client.ask("step", {"wrong": 1}, id=1)
        assert (wrong["id"], wrong["data"]["code"]) == (1, "VALIDATION_ERROR")
        assert await client.ask("step", {"wrong": 1}, id=1) == wrong
        far = await client.ask("state", id=9)
        assert (far["id"], far["data"]["code"]) == (9, "OUT_OF_ORDER")
        for bad in (None, 0, True, "2"):
            error = await client.ask("state", **({} if bad is None else {"id": bad}))
            assert error["data"]["code"] == "VALIDATION_ERROR"
            assert "id" not in error
        assert (await client.ask("state", id=2))["type"] == "state"


async def test_a_dropped_connection_is_attached_again_with_the_answer_it_missed() -> None:
    app = _app(max_concurrent_envs=1)
    async with served(app) as address:
        async with peer(address, is_extended=True) as client:
            hello = (await client.read())["data"]
            await client.ask("reset", {}, id=1)
            await client.send("step", {"what": "block", "value": 0.2}, id=2)
            await asyncio.sleep(0.05)
            client.socket.transport.abort()
        query = f"?session_id={hello['session_id']}"
        async with peer(address, is_extended=True, query=query) as client:
            token = {"session_id": hello["session_id"], "token": hello["token"]}
            again = await client.ask("attach", token)
            assert (again["type"], again["data"]["last_id"]) == ("hello", 2)
            assert _count(await client.ask("step", {"what": "block", "value": 0.2}, id=2)) == 1
            assert _count(await client.ask("step", {}, id=3)) == 2
            await client.send("close", id=4)
            assert await client.closed() == 1000
        assert app.state.sessions.slots.active_sessions == 0


async def test_a_second_connection_takes_the_session_over() -> None:
    async with served(_app()) as address, peer(address, is_extended=True) as old:
        hello = (await old.read())["data"]
        query = f"?session_id={hello['session_id']}"
        async with peer(address, is_extended=True, query=query) as new:
            await new.ask("attach", {"session_id": hello["session_id"], "token": hello["token"]})
            assert await old.closed() == 4001
            assert _count(await new.ask("step", {}, id=1)) == 1


@pytest.mark.parametrize("token", ["wrong", 3, None])
async def test_nobody_attaches_without_the_token(token) -> None:
    async with served(_app()) as address, peer(address, is_extended=True) as owner:
        session_id = (await owner.read())["data"]["session_id"]
        query = f"?session_id={session_id}"
        async with peer(address, is_extended=True, query=query) as thief:
            error = await thief.ask("attach", {"session_id": session_id, "token": token})
            assert error["data"]["code"] == "SESSION_LOST"
            assert await thief.closed() == 4004
        assert _count(await owner.ask("step", {}, id=1)) == 1


@pytest.mark.report("P088")
async def test_a_lease_ends_and_frees_the_slot() -> None:
    Awkward.closed.clear()
    app = _app(lease_s=0.2)
    async with served(app) as address:
        async with peer(address, is_extended=True) as client:
            await client.read()
            client.socket.transport.abort()
        await asyncio.sleep(0.05)
        assert app.state.sessions.slots.active_sessions == 1
        await until(lambda: app.state.sessions.slots.active_sessions == 0)
        assert len(Awkward.closed) == 1


async def test_those_who_wait_are_told_their_place_and_served_in_turn() -> None:
    app = _app(max_concurrent_envs=1, queue_timeout_s=20.0)
    async with served(app) as address, peer(address, is_extended=True) as first:
        await first.read()
        async with (
            peer(address, is_extended=True) as second,
            peer(address, is_extended=True) as third,
        ):
            news = await second.read()
            assert news["type"] == "queued"
            assert news["data"] == {
                "position": 1,
                "max_sessions": 1,
                "active_sessions": 1,
                "wait_limit_s": 20.0,
            }
            assert (await third.read())["data"]["position"] == 2
            await first.send("close")
            assert (await second.read())["type"] == "hello"
            await second.send("close")
            while (answer := await third.read())["type"] == "queued":
                pass
            assert answer["type"] == "hello"


async def test_a_wait_in_vain_ends_with_both_numbers() -> None:
    app = _app(max_concurrent_envs=1, queue_timeout_s=0.2)
    async with served(app) as address, peer(address) as holder:
        await holder.ask("reset", {})
        async with peer(address, is_extended=True) as client:
            await client.read()
            error = (await client.read())["data"]
            assert error["code"] == "CAPACITY_REACHED"
            assert (error["active_sessions"], error["max_sessions"]) == (1, 1)
            assert await client.closed() == 1013
        async with peer(address) as plain:
            await plain.send("reset", {})  # kept while it waits
            assert (await plain.read())["data"]["code"] == "CAPACITY_REACHED"
            assert await plain.closed() == 1000


async def test_a_plain_client_that_waits_is_served_what_it_sent_meanwhile() -> None:
    app = _app(max_concurrent_envs=1, queue_timeout_s=10.0)
    async with served(app) as address, peer(address) as holder, peer(address) as waiting:
        await holder.ask("reset", {})
        await waiting.send("reset", {"seed": 4})
        await waiting.send("step", {})
        await asyncio.sleep(0.1)
        await holder.send("close")
        assert _count(await waiting.read()) == 4
        assert _count(await waiting.read()) == 5


async def test_who_leaves_the_queue_takes_no_slot() -> None:
    app = _app(max_concurrent_envs=1, queue_timeout_s=10.0)
    async with served(app) as address, peer(address) as holder:
        await holder.ask("reset", {})
        async with peer(address) as leaving:
            leaving.socket.transport.abort()
        await holder.send("close")
        await holder.closed()
        await until(lambda: app.state.sessions.slots.active_sessions == 0)
        async with peer(address) as client:
            assert (await client.ask("reset", {}))["type"] == "observation"


async def test_a_hung_step_is_answered_and_ends_the_session() -> None:
    Awkward.released.clear()
    try:
        async with served(_app()) as address, peer(address, is_extended=True) as client:
            await client.read()
            error = await client.ask("step", {"what": "hang"}, id=1, timeout_s=0.2)
            assert (error["id"], error["data"]["code"]) == (1, "STEP_TIMEOUT")
            assert await client.closed() == 4004
            Awkward.released.set()
    finally:
        Awkward.released.set()


async def test_an_idle_session_closes_with_its_code() -> None:
    app = _app(idle_timeout_s=0.1)
    async with served(app) as address, peer(address, is_extended=True) as client:
        await client.read()
        assert "idle" in json.dumps(await client.read())
        assert await client.closed() == 4008
