"""corral.v1, frame by frame, with a peer that breaks what can break."""

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest

from corral.serve.client import (
    AuthenticationError,
    CapacityError,
    ClientOptions,
    EnvClient,
    ExecutionError,
    MessageTooLargeError,
    ProtocolError,
    RequestTimeoutError,
    ServerUnreachableError,
    SessionLostError,
)
from support.scripted_peer import Peer, ScriptedPeer

FAST = ClientOptions(
    retransmit_after_s=0.1,
    liveness_timeout_s=0.3,
    connect_timeout_s=2.0,
    message_timeout_s=5.0,
    queue_timeout_s=2.0,
    close_timeout_s=0.3,
)


def client(server: ScriptedPeer, **changes: Any) -> EnvClient[Any, Any, Any]:
    return EnvClient(server.url, options=replace(FAST, **changes))


def ids(server: ScriptedPeer) -> list[Any]:
    return [
        frame.get("id") for frame in server.frames if "id" in frame and frame["type"] != "close"
    ]


async def attached(peer: Peer, **hello: Any) -> None:
    """Accept a re-attachment."""
    frame = await peer.read()
    assert frame == {"type": "attach", "data": {"session_id": "s-1", "token": "secret"}}
    assert "session_id=s-1" in peer.path
    await peer.hello(**hello)


async def test_requests_are_numbered_and_close_is_said():
    async def handler(peer: Peer, _: int) -> None:
        await peer.hello()
        for text in "abc":
            await peer.answer(text)
        await peer.read()
        await peer.close()

    with ScriptedPeer(handler) as server:
        async with client(server) as env:
            assert env.is_resumable
            await env.reset(seed=1)
            await env.step({"x": 1})
            assert (await env.step({"x": 2}, timeout_s=3.0)).observation == {"text": "c"}
        assert server.frames == [
            {"type": "reset", "data": {"seed": 1}, "id": 1},
            {"type": "step", "data": {"x": 1}, "id": 2},
            {"type": "step", "data": {"x": 2}, "timeout_s": 3.0, "id": 3},
            {"type": "close", "id": 4},
        ]


async def test_a_lost_request_is_sent_again_with_its_number():
    async def handler(peer: Peer, _: int) -> None:
        await peer.hello()
        await peer.answer("reset")
        await peer.read()  # and forget it
        await peer.answer("step")
        await peer.read()

    with ScriptedPeer(handler) as server:
        async with client(server) as env:
            await env.reset()
            assert (await env.step({})).observation == {"text": "step"}
        assert ids(server) == [1, 2, 2]
        assert server.connections == 1


async def test_duplicates_and_old_answers_and_strangers_are_ignored():
    async def handler(peer: Peer, _: int) -> None:
        await peer.hello()
        await peer.answer("reset")
        await peer.observe("reset", id=1)
        await peer.hello()
        await peer.say("error", {"message": "?", "code": "INVALID_JSON"})
        await peer.observe("unasked")
        await peer.read()
        await peer.observe("reset", id=1)
        await peer.observe("from the future", id=9)
        await peer.observe("step", id=2)
        await peer.observe("step", id=2)
        await peer.answer("last")
        await peer.read()

    with ScriptedPeer(handler) as server:
        async with client(server) as env:
            await env.reset()
            await asyncio.sleep(0.05)
            assert (await env.step({})).observation == {"text": "step"}
            assert (await env.step({})).observation == {"text": "last"}


@pytest.mark.report("P087", "P107")
async def test_a_connection_cut_during_a_step_is_replaced_and_the_step_not_repeated():
    async def handler(peer: Peer, number: int) -> None:
        if number == 0:
            await peer.hello()
            await peer.answer("reset")
            await peer.read()  # executed, but the answer is lost
            peer.cut()
        else:
            await attached(peer, last_id=2)
            assert (await peer.read())["id"] == 2
            await peer.observe("kept", id=2)
            await peer.read()

    with ScriptedPeer(handler) as server:
        async with client(server) as env:
            await env.reset()
            assert (await env.step({})).observation == {"text": "kept"}
        assert ids(server) == [1, 2, 2]


@pytest.mark.report("P108")
async def test_an_idle_connection_is_replaced_before_anybody_asks():
    is_back = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def handler(peer: Peer, number: int) -> None:
        if number == 0:
            await peer.hello()
            await peer.answer("reset")
            peer.cut()
        else:
            await attached(peer, last_id=1)
            loop.call_soon_threadsafe(is_back.set)
            await peer.answer("step")
            await peer.read()

    with ScriptedPeer(handler) as server:
        async with client(server) as env:
            await env.reset()
            async with asyncio.timeout(3):
                await is_back.wait()
            assert (await env.step({})).observation == {"text": "step"}
        assert ids(server) == [1, 2]


@pytest.mark.report("P109")
async def test_a_half_open_connection_is_found_and_replaced():
    async def handler(peer: Peer, number: int) -> None:
        if number == 0:
            await peer.hello()
            await peer.answer("reset")
            peer.socket.transport.pause_reading()  # alive for TCP, dead for all else
            await asyncio.sleep(1.5)
        else:
            await attached(peer, last_id=1)
            await peer.answer("step")
            await peer.read()

    with ScriptedPeer(handler) as server:
        async with client(server) as env:
            await env.reset()
            started = asyncio.get_running_loop().time()
            assert (await env.step({})).observation == {"text": "step"}
            assert asyncio.get_running_loop().time() - started < 2


async def test_a_slow_step_on_a_living_connection_is_waited_for():
    async def handler(peer: Peer, _: int) -> None:
        await peer.hello()
        await peer.answer("reset")
        frame = await peer.read()
        await asyncio.sleep(1.2)
        await peer.observe("slow", id=frame["id"])
        while True:
            await peer.read()

    with ScriptedPeer(handler) as server:
        async with client(server) as env:
            await env.reset()
            assert (await env.step({})).observation == {"text": "slow"}
        assert server.connections == 1
        assert set(ids(server)) == {1, 2}


async def test_a_server_out_of_reach_for_a_while_is_tried_until_the_lease_ends():
    async def handler(peer: Peer, number: int) -> None:
        if number == 0:
            await peer.hello(lease_s=1.0)
            await peer.answer("reset")
            server.refuse_with = 503
            peer.cut()

    with ScriptedPeer(handler) as server:
        env = client(server)
        await env.reset()
        with pytest.raises(SessionLostError, match="lease of 1 s"):
            await env.step({})
        assert len(server.paths) > 3
        with pytest.raises(SessionLostError):
            await env.step({})
        await env.close()


@pytest.mark.parametrize("code", [4001, 4004, 4008])
async def test_a_session_the_server_ended_is_lost_until_reset(code: int):
    async def handler(peer: Peer, number: int) -> None:
        await peer.hello(session_id=f"s-{number}")
        await peer.answer("reset")
        if number == 0:
            await peer.read()
            await peer.close(code)
        else:
            await peer.answer("step")
            await peer.read()

    with ScriptedPeer(handler) as server:
        async with client(server) as env:
            await env.reset()
            for _ in range(2):
                with pytest.raises(SessionLostError):
                    await env.step({})
            await env.reset()
            assert (await env.step({})).observation == {"text": "step"}
        assert server.connections == 2


@pytest.mark.parametrize("says", ["error", "other session", "forgot", "plain"])
async def test_a_session_the_server_does_not_know_any_more_is_lost(says: str):
    async def handler(peer: Peer, number: int) -> None:
        if number == 0:
            await peer.hello()
            await peer.answer("reset")
            await peer.answer("step")
            if says == "plain":
                server.subprotocols = ()
            peer.cut()
            return
        if says == "plain":
            return
        await peer.read()
        if says == "error":
            await peer.say("error", {"message": "no such session", "code": "SESSION_LOST"})
            await peer.close(4004)
        elif says == "other session":
            await peer.hello(session_id="s-2", last_id=2)
        else:
            await peer.hello(last_id=1)

    with ScriptedPeer(handler) as server:
        env = client(server)
        await env.reset()
        await env.step({})
        with pytest.raises(SessionLostError):
            await env.step({})
        await env.close()


async def test_a_full_server_is_waited_for():
    async def handler(peer: Peer, _: int) -> None:
        for position in (2, 1):
            await peer.say(
                "queued", {"position": position, "max_sessions": 2, "active_sessions": 2}
            )
            await asyncio.sleep(0.2)
        await peer.hello()
        await peer.answer("reset")
        await peer.read()

    with ScriptedPeer(handler) as server:
        async with client(server) as env:
            assert (await env.reset()).observation == {"text": "reset"}


@pytest.mark.report("P089")
@pytest.mark.parametrize("gives_up", ["client", "server"])
async def test_waiting_for_a_slot_ends_with_both_numbers(gives_up: str):
    async def handler(peer: Peer, _: int) -> None:
        told = {"max_sessions": 2, "active_sessions": 2}
        await peer.say("queued", {"position": 1, **told})
        if gives_up == "server":
            data = {"message": "Server at capacity: 2/2", "code": "CAPACITY_REACHED", **told}
            await peer.say("error", data)
            await peer.close(1013)
        else:
            await asyncio.sleep(1.5)

    with ScriptedPeer(handler) as server:
        env = client(server, queue_timeout_s=0.5)
        with pytest.raises(CapacityError, match=r"2.*2") as caught:
            await env.reset()
        assert (caught.value.active_sessions, caught.value.max_sessions) == (2, 2)
        await env.close()


@pytest.mark.report("P086")
async def test_an_answer_that_comes_too_late_ends_the_session():
    async def handler(peer: Peer, number: int) -> None:
        await peer.hello(session_id=f"s-{number}")
        await peer.answer("reset")
        if number == 0:
            while True:
                await peer.read()
        await peer.answer("step")
        await peer.read()

    with ScriptedPeer(handler) as server:
        async with client(server, message_timeout_s=0.5) as env:
            await env.reset()
            with pytest.raises(RequestTimeoutError):
                await env.step({})
            with pytest.raises(SessionLostError):
                await env.step({})
            await env.reset()
            assert (await env.step({})).observation == {"text": "step"}
        assert {"type": "close", "id": 3} in server.frames  # the first session's slot is freed


async def test_an_error_is_an_answer_and_the_session_goes_on():
    async def handler(peer: Peer, _: int) -> None:
        await peer.hello()
        await peer.answer("reset")
        frame = await peer.read()
        data = {"message": "boom", "code": "EXECUTION_ERROR", "error_id": "e1"}
        await peer.say("error", data, id=frame["id"])
        await peer.answer("step")
        await peer.read()

    with ScriptedPeer(handler) as server:
        async with client(server) as env:
            await env.reset()
            with pytest.raises(ExecutionError, match="boom") as caught:
                await env.step({})
            assert caught.value.details == {"error_id": "e1"}
            await env.step({})
        assert ids(server) == [1, 2, 3]


async def test_a_step_that_took_too_long_at_the_server_is_a_timeout():
    async def handler(peer: Peer, _: int) -> None:
        await peer.hello()
        await peer.answer("reset")
        frame = await peer.read()
        data = {"message": "step took longer than 1 s", "code": "STEP_TIMEOUT"}
        await peer.say("error", data, id=frame["id"])
        await peer.close(4004)

    with ScriptedPeer(handler) as server:
        async with client(server) as env:
            await env.reset()
            with pytest.raises(RequestTimeoutError, match="longer than 1 s"):
                await env.step({})
            with pytest.raises(SessionLostError):
                await env.step({})


async def test_a_request_that_is_too_large_costs_only_itself():
    async def handler(peer: Peer, number: int) -> None:
        if number == 0:
            await peer.hello()
            await peer.answer("reset")
            await peer.read()
            await peer.close(1009)
        else:
            await attached(peer, last_id=1)
            await peer.answer("step")
            await peer.read()

    with ScriptedPeer(handler) as server:
        async with client(server) as env:
            await env.reset()
            with pytest.raises(MessageTooLargeError):
                await env.step({"big": True})
            assert (await env.step({})).observation == {"text": "step"}
        assert ids(server) == [1, 2, 2]


def replayable(answers: list[str], *, again: list[str]) -> Any:
    """A server that dies after ``answers`` and then gives ``again``."""

    async def handler(peer: Peer, number: int) -> None:
        if number == 0:
            await peer.hello(is_replayable=True)
            for text in answers:
                await peer.answer(text)
            peer.cut()
        elif number == 1:
            await peer.read()
            await peer.say("error", {"message": "who?", "code": "SESSION_LOST"})
            await peer.close(4004)
        else:
            await peer.hello(session_id="s-2", is_replayable=True)
            for text in again:
                await peer.answer(text)
            await peer.read()

    return handler


async def test_a_replayable_episode_is_played_again_from_its_last_reset():
    handler = replayable(["r0", "old", "r1", "a", "b"], again=["r1", "a", "b", "c"])
    with ScriptedPeer(handler) as server:
        async with client(server) as env:
            await env.reset(seed=0)
            await env.step({"n": 0})
            await env.reset(seed=1)
            await env.step({"n": 1})
            await env.step({"n": 2})
            assert (await env.step({"n": 3})).observation == {"text": "c"}
        sent = [(f["type"], f.get("data"), f["id"]) for f in server.frames if "id" in f][5:]
        assert sent == [
            ("reset", {"seed": 1}, 1),
            ("step", {"n": 1}, 2),
            ("step", {"n": 2}, 3),
            ("step", {"n": 3}, 4),
            ("close", None, 5),
        ]


async def test_a_replay_that_differs_is_a_lost_session():
    handler = replayable(["r", "a", "b"], again=["r", "a", "other", "c"])
    with ScriptedPeer(handler) as server:
        async with client(server) as env:
            await env.reset()
            await env.step({"n": 1})
            await env.step({"n": 2})
            with pytest.raises(SessionLostError, match="request 3 of 3"):
                await env.step({"n": 3})
            with pytest.raises(SessionLostError):
                await env.step({"n": 3})
        assert {"n": 3} not in [frame.get("data") for frame in server.frames]


async def test_a_server_without_the_subprotocol_gets_plain_frames():
    async def handler(peer: Peer, number: int) -> None:
        await peer.answer("reset")
        if number == 0:
            peer.cut()
        else:
            await peer.answer("step")
            await peer.read()

    with ScriptedPeer(handler, subprotocols=()) as server:
        async with client(server) as env:
            await env.reset()
            with pytest.raises(SessionLostError):
                await env.step({}, timeout_s=1.0)
            await env.reset()
            await env.step({}, timeout_s=1.0)
        assert [frame for frame in server.frames if set(frame) - {"type", "data"}] == []


async def test_a_plain_answer_nobody_waits_for_is_never_taken_for_another():
    async def handler(peer: Peer, number: int) -> None:
        await peer.answer("reset")
        if number == 0:
            await peer.observe("stray")
        await peer.answer("step")
        await peer.read()

    with ScriptedPeer(handler, subprotocols=()) as server:
        async with client(server) as env:
            await env.reset()
            await asyncio.sleep(0.1)
            with pytest.raises(ProtocolError, match="nobody made"):
                await env.step({})
            await env.reset()
            assert (await env.step({})).observation == {"text": "step"}


@pytest.mark.parametrize("text", ["no json", "[1, 2]", "3", "[" * 100_000])
async def test_what_is_no_frame_is_a_protocol_error(text: str):
    async def handler(peer: Peer, _: int) -> None:
        await peer.read()
        await peer.socket.send(text)
        await peer.read()

    with ScriptedPeer(handler, subprotocols=()) as server:
        async with client(server) as env:
            with pytest.raises(ProtocolError):
                await env.reset()


async def test_headers_and_token_are_sent_and_a_refusal_says_what_to_do():
    async def handler(peer: Peer, _: int) -> None:
        await peer.hello()

    with ScriptedPeer(handler) as server:
        async with client(server, headers={"X-Team": "red"}, token="sesame"):
            pass
        assert server.headers[0]["X-Team"] == "red"
        assert server.headers[0]["Authorization"] == "Bearer sesame"
        assert "sesame" not in repr(ClientOptions(token="sesame"))
        server.refuse_with = 401
        with pytest.raises(AuthenticationError, match="token="):
            await client(server).reset()
        server.refuse_with = 404
        with pytest.raises(ServerUnreachableError, match="prefix"):
            await client(server).reset()


async def test_a_goodbye_that_was_lost_is_said_again():
    async def handler(peer: Peer, number: int) -> None:
        if number == 0:
            await peer.hello()
            await peer.answer("reset")
            await peer.socket.recv()
            peer.cut()
        else:
            await attached(peer, last_id=1)
            await peer.read()

    with ScriptedPeer(handler) as server:
        env = client(server, close_timeout_s=2.0)
        await env.reset()
        await env.close()
        assert server.frames[-1] == {"type": "close", "id": 2}
        assert server.connections == 2


async def test_close_during_a_request_ends_it():
    async def handler(peer: Peer, _: int) -> None:
        await peer.hello()
        await peer.answer("reset")
        while True:
            await peer.read()

    with ScriptedPeer(handler) as server:
        env = client(server)
        await env.reset()
        step = asyncio.ensure_future(env.step({}))
        await asyncio.sleep(0.2)
        await env.close()
        with pytest.raises(SessionLostError):
            await step


@pytest.mark.stress
async def test_thousands_of_calls_wait_at_once_without_a_thread_each():
    waiting, threads = 2000, threading.active_count()
    asked: list[Peer] = []
    all_asked = asyncio.Event()

    async def handler(peer: Peer, _: int) -> None:
        await peer.hello()
        frame = await peer.read()
        asked.append(peer)
        if len(asked) == waiting:
            all_asked.set()
        await all_asked.wait()
        await peer.observe("at last", id=frame["id"])
        await peer.read()

    door = asyncio.Semaphore(50)

    async def connect(env: EnvClient[Any, Any, Any]) -> None:
        async with door:
            await env.connect()

    with ScriptedPeer(handler) as server:
        patient = ClientOptions(message_timeout_s=60, connect_timeout_s=60, liveness_timeout_s=30)
        clients = [EnvClient(server.url, options=patient) for _ in range(waiting)]
        await asyncio.gather(*(connect(env) for env in clients))
        results = await asyncio.gather(*(env.reset() for env in clients))
        assert len(results) == waiting
        assert threading.active_count() - threads < 50
        assert server.connections == waiting  # none was taken for dead because all were busy
        await asyncio.gather(*(env.close() for env in clients))
