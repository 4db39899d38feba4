"""Items 7 to 11 and 14: the frames of one session on /ws."""

from typing import Any

from corral.serve.check.instances import NoInstanceError, invalid_instances
from corral.serve.check.target import Target, error_of
from corral.serve.check.verdict import Check, CheckFailed, CheckSkipped, make_check, require
from corral.serve.check.wire import Closed, Silence, Socket

_QUIET_S = 0.3


async def silent_first(target: Target) -> None:
    """A connection without a subprotocol is accepted, and the server waits to be spoken to."""
    socket = await target.connect()
    try:
        came = await socket.receive(_QUIET_S)
        require(
            isinstance(came, Silence) and socket.connection.subprotocol is None,
            sent="a connection to /ws",
            came=came,
            expected="no frame and no subprotocol",
        )
    finally:
        await socket.leave()


async def ws_reset(target: Target) -> None:
    """reset works with and without data."""
    frames: list[Any] = [{"type": "reset", "data": {**target.probes.reset, "seed": 7}}]
    if not target.probes.reset:
        frames += [{"type": "reset"}, {"type": "reset", "data": {}}]
    async with target.session() as socket:
        for sent in frames:
            _require_type(sent, await socket.ask(sent), "observation")


async def ws_step(target: Target) -> None:
    """step takes the action directly as its data."""
    if target.facts.refused is not None:
        action, came = target.facts.refused
        sent = {"type": "step", "data": action}
        raise CheckFailed(sent=sent, came=came, expected="an observation: /schema allows that")
    async with target.episode() as socket:
        await target.step(socket)


async def ws_state(target: Target) -> None:
    """state has no data, and its answer is the bare state."""
    async with target.episode() as socket:
        sent = {"type": "state"}
        came = await socket.ask(sent)
        _require_type(sent, came, "state")
        data = came.get("data")
        require(
            isinstance(data, dict) and {"episode_id", "step_count"} <= set(data),
            sent=sent,
            came=came,
            expected="episode_id and step_count in data",
        )


async def ws_close(target: Target) -> None:
    """close is answered by a clean close with code 1000, and by no frame."""
    async with target.session() as socket:
        came = await socket.ask({"type": "close"})
        require(came == Closed(1000), sent={"type": "close"}, came=came, expected="a close, 1000")


async def envelope(target: Target) -> None:
    """reward and done are in the envelope only; metadata is in the observation."""
    async with target.episode() as socket:
        sent = {"type": "step", "data": target.action()}
        data = await target.step(socket)
        observation = data.get("observation")
        reward, done = data.get("reward"), data.get("done")
        require(
            isinstance(observation, dict)
            and not {"reward", "done"} & set(observation)
            and "metadata" in observation
            and isinstance(done, bool)
            and (reward is None or isinstance(reward, bool | int | float)),
            sent=sent,
            came=data,
            expected="reward (a number or null) and done (true or false) beside the observation, "
            "not in it, and metadata in it",
        )


async def episode_id(target: Target) -> None:
    """state reports the episode_id that was given to reset."""
    async with target.episode(episode_id="corral-check-7") as socket:
        state = await target.state(socket)
        require(
            state.get("episode_id") == "corral-check-7",
            sent={"type": "reset", "data": {"episode_id": "corral-check-7"}},
            came=state,
            expected="that episode_id in the state",
        )


async def step_count(target: Target) -> None:
    """After k steps the state's step_count is k, and 0 after a reset."""
    async with target.episode() as socket:
        for count in range(4):
            state = await target.state(socket)
            require(
                state.get("step_count") == count,
                sent=f"reset and {count} steps",
                came=state,
                expected=f"step_count {count}",
            )
            if count == 3 or (await target.step(socket)).get("done"):
                break
        await target.reset(socket)
        state = await target.state(socket)
        require(
            state.get("step_count") == 0, sent="another reset", came=state, expected="step_count 0"
        )


async def pipelining(target: Target) -> None:
    """Requests that are sent at once are answered in order."""
    action = target.action()
    sent = [
        {"type": "reset", "data": {**target.probes.reset}},
        {"type": "state"},
        {"type": "step", "data": action},
        {"type": "state"},
        {"type": "reset", "data": {**target.probes.reset}},
        {"type": "state"},
    ]
    async with target.session() as socket:
        for frame in sent:
            await socket.send(frame)
        came = [(await socket.receive()).get("type") for _ in sent]
        require(
            came == ["observation", "state"] * 3,
            sent=[frame["type"] for frame in sent],
            came=came,
            expected="observation, state, three times",
        )


async def invalid_json(target: Target) -> None:
    """Text that is no JSON is answered with INVALID_JSON, and the session goes on."""
    async with target.episode() as socket:
        await _require_error(socket, "{not json", "INVALID_JSON")
        await _require_alive(target, socket, "text that is no JSON")


async def unknown_type(target: Target) -> None:
    """An unknown or missing type is answered with UNKNOWN_TYPE, and the session goes on."""
    async with target.episode() as socket:
        for sent in ({"type": "no_such_type"}, {"foo": 1}):
            await _require_error(socket, sent, "UNKNOWN_TYPE")
        await _require_alive(target, socket, "an unknown type")


async def invalid_envelope(target: Target) -> None:
    """A step without data is answered with VALIDATION_ERROR, and the session goes on."""
    async with target.episode() as socket:
        await _require_validation_error(socket, {"type": "step"})
        await _require_alive(target, socket, "a step without data")


async def invalid_action(target: Target) -> None:
    """An invalid action is answered with VALIDATION_ERROR and its errors; the session goes on."""
    schema = (target.facts.schemas or {}).get("action")
    try:
        wrong = list(invalid_instances(schema or {}))
    except NoInstanceError:
        wrong = []
    if not wrong:
        raise CheckSkipped("no invalid action could be derived from /schema")
    async with target.episode() as socket:
        for _, action in wrong:
            await _require_validation_error(socket, {"type": "step", "data": action})
        await _require_alive(target, socket, "an invalid action")


async def execution_error(target: Target) -> None:
    """A world that raises is answered with EXECUTION_ERROR, and the session goes on."""
    if target.probes.failing is None:
        raise CheckSkipped("needs an action during which the world raises: --probe failing=JSON")
    target.action()
    async with target.episode() as socket:
        sent = {"type": "step", "data": target.probes.failing}
        await _require_error(socket, sent, "EXECUTION_ERROR")
        await _require_alive(target, socket, "a step that raised")


async def no_object(target: Target) -> None:
    """JSON that is no object, and a binary frame, are answered with an error frame."""
    for sent in ("[1, 2]", "17", b"\x00\x01"):
        async with target.session() as socket:
            came = await socket.ask(sent)
            require(
                isinstance(error_of(came).get("code"), str),
                sent=sent,
                came=came,
                expected="an error frame with a code",
            )


async def _require_error(socket: Socket, sent: Any, code: str) -> dict[str, Any]:
    came = await socket.ask(sent)
    data = error_of(came)
    require(
        data.get("code") == code and isinstance(data.get("message"), str),
        sent=sent,
        came=came,
        expected=f"an error frame with the code {code} and a message",
    )
    return dict(data)


async def _require_validation_error(socket: Socket, sent: Any) -> None:
    data = await _require_error(socket, sent, "VALIDATION_ERROR")
    require(
        isinstance(data.get("errors"), list) and bool(data["errors"]),
        sent=sent,
        came=data,
        expected="a list of errors",
    )


async def _require_alive(target: Target, socket: Socket, after: str) -> None:
    """A valid step works, or, where none is known, the state does."""
    try:
        if target.facts.action is None:
            await target.state(socket)
        else:
            await target.step(socket)
    except CheckFailed as failure:
        raise CheckFailed(
            sent=f"{after}, then {failure.sent}",
            came=failure.came,
            expected=f"{failure.expected}, on the same connection",
        ) from None


def _require_type(sent: Any, came: Any, kind: str) -> None:
    require(
        came.get("type") == kind and isinstance(came.get("data"), dict),
        sent=sent,
        came=came,
        expected=f"a frame of type {kind} with data",
    )


FRAME_CHECKS: tuple[Check, ...] = (
    make_check(silent_first, 7),
    make_check(ws_reset, 8),
    make_check(ws_step, 8),
    make_check(ws_state, 8),
    make_check(ws_close, 8),
    make_check(envelope, 9),
    make_check(episode_id, 10),
    make_check(step_count, 10),
    make_check(invalid_json, 11),
    make_check(unknown_type, 11),
    make_check(invalid_envelope, 11),
    make_check(invalid_action, 11),
    make_check(execution_error, 11),
    make_check(no_object, 11),
    make_check(pipelining, 14),
)
