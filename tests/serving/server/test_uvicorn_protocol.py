"""The short way for whole frames, on the server as ``corral serve`` sets it up."""

import asyncio
import json
import os
import struct
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import pytest
import websockets

from corral.serve import create_app
from corral.serve.running import server_settings
from support.serve_sessions import Awkward, Do, Seen, peer
from support.served_app import served


def _served() -> AbstractAsyncContextManager[str]:
    return served(create_app(Awkward, Do, Seen), **server_settings())


def _frame(first: int, payload: bytes) -> bytes:
    key = os.urandom(4)
    length = len(payload)
    if length < 126:
        head = struct.pack("!BB", first, 0x80 | length)
    elif length < 2**16:
        head = struct.pack("!BBH", first, 0x80 | 126, length)
    else:
        head = struct.pack("!BBQ", first, 0x80 | 127, length)
    return head + key + bytes(byte ^ key[i & 3] for i, byte in enumerate(payload))


@asynccontextmanager
async def _raw(address: str):
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        f"GET /ws HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    first, length = await reader.readexactly(2)
    if length == 126:
        (length,) = struct.unpack("!H", await reader.readexactly(2))
    elif length == 127:
        (length,) = struct.unpack("!Q", await reader.readexactly(8))
    return first, await reader.readexactly(length)


_STATE = b'{"type": "state"}'


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_frames_are_read_however_the_network_cuts_them(size: int) -> None:
    async with _served() as address, _raw(address) as (reader, writer):
        stream = _frame(0x81, b'{"type": "reset", "data": {"seed": 1}}')
        stream += _frame(0x01, b'{"type": ') + _frame(0x89, b"ping") + _frame(0x80, b'"state"}')
        stream += _frame(0x81, b'{"type": "step", "data": {"value": "' + b"z" * 300 + b'"}}')
        stream += _frame(0x81, _STATE)
        for start in range(0, len(stream), size):
            writer.write(stream[start : start + size])
            await writer.drain()
        answers = [await _answer(reader) for _ in range(5)]
        assert [payload for first, payload in answers if first == 0x8A] == [b"ping"]
        texts = [json.loads(payload) for first, payload in answers if first == 0x81]
        assert [text["type"] for text in texts] == ["observation", "state", "observation", "state"]
        assert texts[-1]["data"]["step_count"] == 2


async def test_fifty_pipelined_frames_are_answered_in_order() -> None:
    async with _served() as address, peer(address) as client:
        for _ in range(50):
            await client.send("step", {})
        counts = [(await client.read())["data"]["observation"]["count"] for _ in range(50)]
        assert counts == list(range(1, 51))


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"\x81\x03abc", 1002),  # not masked
        (_frame(0xF1, _STATE), 1002),  # reserved bits
        (_frame(0x83, _STATE), 1002),  # no such opcode
        (_frame(0x81, b"\xff\xfe"), 1007),  # no UTF-8
        (struct.pack("!BBQ", 0x81, 0xFF, 17 * 2**20) + b"1234", 1009),  # larger than allowed
    ],
    ids=["unmasked", "reserved-bits", "no-opcode", "no-utf8", "too-large"],
)
async def test_violations_close_with_their_code(frame: bytes, code: int) -> None:
    async with _served() as address, _raw(address) as (reader, writer):
        writer.write(frame)
        first, payload = await _answer(reader)
        assert (first, struct.unpack("!H", payload[:2])[0]) == (0x88, code)


@pytest.mark.parametrize("size", [10, 125, 126, 65_535, 65_536, 5_000_000])
async def test_answers_of_every_length_arrive(size: int) -> None:
    async with _served() as address, peer(address) as client:
        answer = await client.ask("step", {"what": "big", "value": size})
        assert len(answer["data"]["observation"]["big"]) == size


async def test_a_client_that_asks_for_compression_gets_on_without() -> None:
    async with (
        _served() as address,
        websockets.connect(f"ws://{address}/ws", compression="deflate", proxy=None) as client,
    ):
        assert "Sec-WebSocket-Extensions" not in client.response.headers
        await client.send(_STATE.decode())
        assert json.loads(await client.recv())["type"] == "state"
