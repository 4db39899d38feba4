"""The frames on the pages are frames that are really sent."""

import asyncio
import json
from typing import Any

import pytest
import websockets

from corral.serve import create_app
from corral.worlds.guess_number import GuessNumber
from support.docs_blocks import Block, blocks
from support.served_app import served

FRAMES = {
    json.loads(block.text)["type"]: block
    for block in blocks()
    if block.language == "json" and "type" in json.loads(block.text)
}


def fields(block: Block) -> tuple[set[str], set[str]]:
    frame = json.loads(block.text)
    return set(frame), set(frame.get("data", {}))


async def connect(address: str, path: str = "/ws"):
    return await websockets.connect(
        f"ws://{address}{path}", subprotocols=[websockets.Subprotocol("corral.v1")], proxy=None
    )


async def receive(socket: Any) -> dict[str, Any]:
    async with asyncio.timeout(10):
        return json.loads(await socket.recv())


def test_every_frame_is_looked_at():
    assert set(FRAMES) == {"hello", "queued", "attach", "call_tool"}


async def test_the_first_frames_have_the_fields_shown():
    async with served(create_app(GuessNumber, max_concurrent_envs=1)) as address:
        first = await connect(address)
        second = await connect(address)
        for socket, kind in ((first, "hello"), (second, "queued")):
            frame = await receive(socket)
            shown, shown_data = fields(FRAMES[kind])
            assert frame["type"] == kind
            assert (set(frame), set(frame["data"])) == (shown, shown_data)
            if kind == "hello":
                session = frame["data"]
        await first.close()
        again = await connect(address, f"/ws?session_id={session['session_id']}")
        attach = json.loads(FRAMES["attach"].text)
        assert set(attach["data"]) <= set(session)
        attach["data"] = {name: session[name] for name in attach["data"]}
        await again.send(json.dumps(attach))
        frame = await receive(again)
        assert (frame["type"], frame["data"]["session_id"]) == ("hello", session["session_id"])
        await again.close()
        await second.close()


@pytest.mark.parametrize("action", [FRAMES["call_tool"]], ids=str)
async def test_the_action_shown_is_one(action: Block):
    async with (
        served(create_app(GuessNumber)) as address,
        websockets.connect(f"ws://{address}/ws", proxy=None) as socket,
    ):
        await socket.send(json.dumps({"type": "reset", "data": {"secret": 7}}))
        await receive(socket)
        await socket.send(json.dumps({"type": "step", "data": json.loads(action.text)}))
        assert (await receive(socket))["data"]["done"] is True
