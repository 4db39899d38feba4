"""Items 12, 13, 15, 16 and 17: capacity, several sessions, and what lasts or is large."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from corral.serve.check.instances import NoInstanceError, valid_instance
from corral.serve.check.target import Target, error_of, first_answer
from corral.serve.check.verdict import Check, CheckSkipped, make_check, require
from corral.serve.check.wire import Closed, Frame, Silence, Socket

_LARGE_OBSERVATION = 20_000_000
_LARGE_ACTION = 15 * 1024 * 1024
_COUNTERS = ("environments_made", "environments_closed")


async def capacity_refusal(target: Target) -> None:
    """A session too many gets CAPACITY_REACHED with both numbers, then the close."""
    async with _all_slots_taken(target) as (sockets, refused, came):
        _require_refusal(came, len(sockets))
        end = await refused.receive()
        require(
            isinstance(end, Closed),
            sent="nothing, after CAPACITY_REACHED",
            came=end,
            expected="a close",
        )


async def capacity_release(target: Target) -> None:
    """A session that is closed or cut off frees its slot within a second, and one slot only."""
    async with _all_slots_taken(target) as (sockets, _, came):
        if error_of(came).get("code") != "CAPACITY_REACHED":
            raise CheckSkipped("the server's capacity could not be seen")
        for is_cut in (False, True):
            gone = sockets.pop()
            if is_cut:
                gone.cut()
            else:
                await gone.leave()
            sockets.append(await _next_slot(target, "cut off" if is_cut else "closed"))
        refused = await target.connect()
        try:
            came = await first_answer(refused, target.refusal_wait_s)
            require(
                error_of(came).get("code") == "CAPACITY_REACHED",
                sent="a connection more than there are slots, after others ended",
                came=came,
                expected="CAPACITY_REACHED, as a slot is free once",
            )
        finally:
            await refused.leave()


async def factory_error(target: Target) -> None:
    """A constructor that fails is answered with FACTORY_ERROR, then the close."""
    if target.probes.breaking is None:
        raise CheckSkipped(
            "needs an action after which the next constructor fails: --probe breaking=JSON"
        )
    target.action()
    async with target.episode() as socket:
        came = await socket.ask({"type": "step", "data": target.probes.breaking})
        require(
            came.get("type") == "observation",
            sent=target.probes.breaking,
            came=came,
            expected="an observation",
        )
    failed = await target.connect()
    try:
        came = await failed.receive()
        require(
            error_of(came).get("code") == "FACTORY_ERROR"
            and isinstance(error_of(came).get("factory_name"), str),
            sent="a connection whose constructor fails",
            came=came,
            expected="an error frame with the code FACTORY_ERROR and a factory_name",
        )
        end = await failed.receive()
        require(isinstance(end, Closed), sent="nothing, after that", came=end, expected="a close")
    finally:
        await failed.leave()


async def isolation(target: Target) -> None:
    """Two sessions do not share state."""
    async with target.episode(episode_id="corral-check-a") as one:
        other = await target.connect()
        try:
            came = await first_answer(other, target.refusal_wait_s)
            if error_of(came).get("code") == "CAPACITY_REACHED":
                raise CheckSkipped("the server has one slot only")
            await target.reset(other, episode_id="corral-check-b")
            before = await target.state(other)
            for _ in range(2):
                if (await target.step(one)).get("done"):
                    break
            await target.reset(one, episode_id="corral-check-c")
            after = await target.state(other)
            require(
                before == after,
                sent="steps and a reset in another session",
                came=f"{before}, then {after}",
                expected="the same state before and after",
            )
        finally:
            await other.leave()


async def close_once(target: Target) -> None:
    """The environment is closed once for each session, also when the connection is cut."""
    before = await _counters(target)
    socket = await target.connect()
    await first_answer(socket, target.timeout_s)
    socket.cut()
    after = before
    for _ in range(20):
        await asyncio.sleep(0.15)
        after = await _counters(target)
        if after[0] - before[0] <= after[1] - before[1]:
            break
    # Each look is a session of its own, so at every look as many were closed as made since.
    require(
        after[0] - before[0] == after[1] - before[1],
        sent="sessions that were closed, and one that was cut off",
        came=f"{after[0] - before[0]} environments made, {after[1] - before[1]} closed",
        expected="as many closed as made",
    )


async def ping(target: Target) -> None:
    """A ping is answered."""
    async with target.session() as socket:
        pong = await socket.connection.ping()
        done, _ = await asyncio.wait([asyncio.ensure_future(pong)], timeout=5.0)
        require(bool(done), sent="a ping", came="nothing for 5 s", expected="a pong")


async def slow_step(target: Target) -> None:
    """A slow step blocks neither /health nor other sessions."""
    if target.probes.slow is None:
        raise CheckSkipped("needs an action that takes seconds: --probe slow=JSON")
    async with target.episode() as slow:
        other = await target.connect()
        try:
            came = await first_answer(other, target.refusal_wait_s)
            has_other = error_of(came).get("code") != "CAPACITY_REACHED"
            await slow.send({"type": "step", "data": target.probes.slow})
            early = await slow.receive(0.2)
            if not isinstance(early, Silence):
                raise CheckSkipped(f"the slow action took no time: {early}")
            await _require_quick("GET /health", target.get("/health"))
            if has_other:
                await _require_quick("state in another session", target.state(other))
            came = await slow.receive(120.0)
            require(
                came.get("type") == "observation",
                sent=target.probes.slow,
                came=came,
                expected="its observation in the end",
            )
        finally:
            await other.leave()


async def idle_minute(target: Target) -> None:
    """A connection that is idle for a minute goes on."""
    async with target.episode() as socket:
        await asyncio.sleep(60.0)
        await target.state(socket)


async def large_observation(target: Target) -> None:
    """An observation of 20 MB is delivered."""
    if target.probes.large is None:
        raise CheckSkipped("needs an action with an observation of 20 MB: --probe large=JSON")
    async with target.episode() as socket:
        came = await socket.ask({"type": "step", "data": target.probes.large}, 60.0)
        length = len(str(came))
        require(
            came.get("type") == "observation" and length >= _LARGE_OBSERVATION,
            sent=target.probes.large,
            came=f"{length} characters: {came}",
            expected=f"an observation of at least {_LARGE_OBSERVATION} characters",
        )


async def large_action(target: Target) -> None:
    """An action of 15 MiB is accepted."""
    action = _action_of_size(target, _LARGE_ACTION)
    async with target.episode() as socket:
        came = await socket.ask({"type": "step", "data": action}, 60.0)
        require(
            came.get("type") in ("observation", "error"),
            sent=f"an action of {_LARGE_ACTION} bytes",
            came=came,
            expected="an observation, or the world's own error",
        )


def _action_of_size(target: Target, size: int) -> Mapping[str, Any]:
    schema = (target.facts.schemas or {}).get("action") or {}
    for name, part in schema.get("properties", {}).items():
        if isinstance(part, dict) and part.get("type") == "string" and "maxLength" not in part:
            try:
                base = target.facts.action or valid_instance(schema)
            except NoInstanceError:
                break
            return {**base, name: "a" * size}
    raise CheckSkipped("the action has no text of unlimited length")


@asynccontextmanager
async def _all_slots_taken(target: Target) -> AsyncIterator[tuple[list[Socket], Socket, Frame]]:
    """Sockets for every slot, the one that came too late, and what it was told."""
    sockets: list[Socket] = []
    try:
        while len(sockets) <= target.most_sessions:
            socket = await target.connect()
            sockets.append(socket)
            came = await first_answer(socket, target.refusal_wait_s)
            if came.get("type") != "state":
                sockets.pop()
                try:
                    yield sockets, socket, came
                finally:
                    await socket.leave()
                return
        raise CheckSkipped(f"the server has more than {target.most_sessions} slots")
    finally:
        for socket in sockets:
            await socket.leave()


async def _next_slot(target: Target, how: str) -> Socket:
    """A session as soon as there is one; a second is allowed."""
    started = time.monotonic()
    came: Frame = Silence(0.0)
    while time.monotonic() - started < 1.0:
        socket = await target.connect()
        came = await first_answer(socket, 1.0)
        if came.get("type") == "state":
            return socket
        socket.cut()  # A good-bye to a server that has refused may take its time.
    require(
        False,
        sent=f"a connection after another was {how}",
        came=came,
        expected="a session within a second",
    )
    raise AssertionError


def _require_refusal(came: Frame, slots: int) -> None:
    data = error_of(came)
    require(
        data.get("code") == "CAPACITY_REACHED"
        and data.get("active_sessions") == slots
        and data.get("max_sessions") == slots,
        sent=f"a connection while {slots} sessions are open",
        came=came,
        expected=f"CAPACITY_REACHED with active_sessions {slots} and max_sessions {slots}",
    )


async def _require_quick(sent: str, answer: Any) -> None:
    started = time.monotonic()
    await answer
    took_s = time.monotonic() - started
    require(
        took_s < 1.0,
        sent=f"{sent}, during a slow step",
        came=f"an answer after {took_s:.1f} s",
        expected="an answer within a second",
    )


async def _counters(target: Target) -> tuple[int, int]:
    async with target.session() as socket:
        state = await target.state(socket)
    made, closed = (state.get(name) for name in _COUNTERS)
    if not isinstance(made, int) or not isinstance(closed, int):
        raise CheckSkipped(f"needs a world whose state counts {' and '.join(_COUNTERS)}")
    return made, closed


SESSION_CHECKS: tuple[Check, ...] = (
    make_check(capacity_refusal, 12),
    make_check(capacity_release, 12, 15),
    make_check(factory_error, 13),
    make_check(isolation, 15),
    make_check(close_once, 15),
    make_check(ping, 16),
    make_check(slow_step, 16),
    make_check(idle_minute, 16, is_thorough=True),
    make_check(large_observation, 17, is_thorough=True),
    make_check(large_action, 17, is_thorough=True),
)
