"""Frames and requests as no client sends them, made from a seed, and a judge of the answers."""

import asyncio
import json
import os
import random
import socket
import struct
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import psutil
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from corral.serve.check.wire import ask_http

CODES = {
    *("INVALID_JSON", "UNKNOWN_TYPE", "VALIDATION_ERROR", "EXECUTION_ERROR", "SESSION_ERROR"),
    *("CAPACITY_REACHED", "OUT_OF_ORDER", "SESSION_LOST", "MESSAGE_TOO_LARGE", "RATE_LIMITED"),
    *("FACTORY_ERROR", "STEP_TIMEOUT"),
}
ANSWERS = {"observation", "state", "error", "mcp", "hello", "queued"}
ENDS = {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1013, 4001, 4004, 4008}
"""Close codes that say whose fault it was; 1011 would be the server's own."""
ANSWER_WITHIN_S = 20.0
_VALID: list[Any] = [
    {"type": "reset", "data": {"seed": 7, "episode_id": "e"}},
    {"type": "reset"},
    {"type": "step", "data": {"direction": 1}},
    {"type": "step", "data": {"message": "hi"}},
    {"type": "step", "data": {"type": "call_tool", "tool_name": "add", "arguments": {"a": 1}}},
    {"type": "state"},
    {"type": "mcp", "data": {"jsonrpc": "2.0", "method": "tools/list", "params": {}, "id": 1}},
    {
        "type": "mcp",
        "data": {
            "jsonrpc": "2.0",
            "method": "tools/call",
            "params": {"name": "add", "arguments": {"a": 1, "b": 2}},
            "id": 1,
        },
    },
    {"type": "attach", "data": {"session_id": "s-1", "token": "t"}},
]
_RPC: list[Any] = [frame["data"] for frame in _VALID if frame["type"] == "mcp"]
_RPC += [{"jsonrpc": "2.0", "method": "openenv/session/close", "params": {"session_id": "x"}}]
_ODD_NUMBERS = ["1e400", "-1e400", "NaN", "Infinity", "9" * 5000, "-0", "1e-400", "2" * 25, "1.5"]
_ODD_TEXTS = [r'"\ud800"', r'"\u0000"', '""', '"' + "é" * 300 + '"', '"' + "x" * 100_000 + '"']


@dataclass
class Verdicts:
    """What a run of the fuzzer saw."""

    sent: int = 0
    answers: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])
    """Answers that no server may give, with what they answered."""

    def object_to(self, what: str, sent: Any) -> None:
        """Note something wrong."""
        self.wrong.append(f"{what} – for {str(sent)[:200]!r}")


def malformed(chance: random.Random, *, templates: list[Any]) -> str | bytes:
    """One text or binary frame."""
    match chance.randrange(12):
        case 0:
            return bytes(chance.randrange(256) for _ in range(chance.randrange(200)))
        case 1:
            text = json.dumps(chance.choice(templates))
            return text[: chance.randrange(len(text))]
        case 2 | 3:
            text = list(json.dumps(chance.choice(templates)))
            for _ in range(chance.randrange(1, 6)):
                text[chance.randrange(len(text))] = chr(chance.choice([0, 34, 92, 123, 8232, 65]))
            return "".join(text)
        case 4:
            depth = chance.choice([100, 2_000, 100_000])
            opening, closing = chance.choice([("[", "]"), ('{"a":', "}")])
            return opening * depth + "1" + closing * chance.choice([0, depth])
        case 5:
            depth = chance.choice([50, 1_000, 20_000])
            inner = "[" * depth + "]" * depth
            return '{"type":"step","data":{"direction":' + inner + "}}"
        case 6:
            number = chance.choice(_ODD_NUMBERS)
            return chance.choice(
                [
                    f'{{"type":"step","data":{{"direction":{number}}}}}',
                    f'{{"type":"reset","data":{{"seed":{number}}}}}',
                    f'{{"type":"state","id":{number}}}',
                    f'{{"jsonrpc":"2.0","method":"tools/list","id":{number}}}',
                ]
            )
        case 7:
            odd = chance.choice(_ODD_TEXTS)
            return chance.choice(
                [
                    f'{{"type":{odd}}}',
                    f'{{"type":"step","data":{{{odd}:{odd}}}}}',
                    f'{{"type":"reset","data":{{"episode_id":{odd}}}}}',
                    f'{{"type":"mcp","data":{{"jsonrpc":"2.0","method":{odd},"id":{odd}}}}}',
                ]
            )
        case 8:
            return json.dumps(_value(chance, 3))
        case 9:
            frame = dict(chance.choice(templates))
            frame[chance.choice([*frame, "id", "extra"])] = _value(chance, 2)
            return json.dumps(frame)
        case 10:
            frame = json.loads(json.dumps(chance.choice(templates)))
            inner = frame.get("data", frame)
            if isinstance(inner, dict) and inner:
                inner[chance.choice(list(inner))] = _value(chance, 2)
            return json.dumps(frame)
        case _:
            return json.dumps(chance.choice(templates) | {"id": chance.choice(_IDS)})


_IDS: list[Any] = [0, -1, 1, 2, 10**30, True, None, "1", 1.0, [], {}]


def _value(chance: random.Random, depth: int) -> Any:
    kinds: list[Any] = [None, True, 0, -1, 2**63, 2**200, 0.5, "", "step", "\x00", "ü" * 50]
    if depth and chance.random() < 0.5:
        if chance.random() < 0.5:
            return [_value(chance, depth - 1) for _ in range(chance.randrange(4))]
        keys = ["type", "data", "id", "", "__class__", "metadata", "session_id"]
        return {chance.choice(keys): _value(chance, depth - 1) for _ in range(chance.randrange(4))}
    return chance.choice(kinds)


async def fuzz_socket(
    url: str, path: str, count: int, chance: random.Random, seen: Verdicts, *, is_extended: bool
) -> None:
    """Send ``count`` malformed frames over as many connections as that takes."""
    templates = _RPC if path == "/mcp" else _VALID
    left = count
    while left > 0:
        socket_ = await connect(
            url.replace("http", "ws", 1) + path,
            subprotocols=["corral.v1"] if is_extended else None,  # type: ignore[list-item]
            max_size=None,
            compression=None,
            proxy=None,
            close_timeout=5.0,
        )
        async with socket_:
            if is_extended:
                _judge(seen, await _answer(socket_), "a connection", path)
                left -= await _burst(socket_, min(left, 25), chance, templates, seen, path)
            else:
                left -= await _one_by_one(socket_, left, chance, templates, seen, path)


async def _one_by_one(
    socket_: ClientConnection,
    count: int,
    chance: random.Random,
    templates: list[Any],
    seen: Verdicts,
    path: str,
) -> int:
    """Each frame has its answer, until the server ends the session."""
    for done in range(count):
        frame = malformed(chance, templates=templates)
        seen.sent += 1
        try:
            await socket_.send(frame)
            answer = await _answer(socket_)
        except ConnectionClosed:
            answer = socket_.close_code
        if path == "/mcp" and answer is None and _is_notification(frame):
            continue
        _judge(seen, answer, frame, path)
        if not isinstance(answer, str):
            return done + 1
    return count


async def _burst(
    socket_: ClientConnection,
    count: int,
    chance: random.Random,
    templates: list[Any],
    seen: Verdicts,
    path: str,
) -> int:
    """Some frames have no answer between Corral's peers, so all that comes is judged alone."""
    frames = [malformed(chance, templates=templates) for _ in range(count)]
    seen.sent += count
    try:
        for frame in frames:
            await socket_.send(frame)
        await socket_.send(json.dumps({"type": "close"}))
        while True:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                _judge(seen, str(await socket_.recv()), frames, path)
    except ConnectionClosed:
        _judge(seen, socket_.close_code, frames, path)
    except TimeoutError:
        seen.object_to("no close after close", frames)
    return count


async def _answer(socket_: ClientConnection) -> str | int | None:
    """The answer, the close code, or None for silence."""
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            return str(await socket_.recv())
    except ConnectionClosed:
        return socket_.close_code
    except TimeoutError:
        return None


def _judge(seen: Verdicts, answer: str | int | None, sent: Any, path: str) -> None:
    if answer is None:
        seen.object_to("no answer", sent)
    elif isinstance(answer, int):
        seen.answers[f"close {answer}"] += 1
        if answer not in ENDS:
            seen.object_to(f"close code {answer}", sent)
    else:
        frame = json.loads(answer)
        if path == "/mcp":
            is_right = frame.get("jsonrpc") == "2.0" and ("result" in frame or "error" in frame)
            seen.answers["json-rpc" if is_right else "other"] += 1
        else:
            kind = frame.get("type")
            code = frame.get("data", {}).get("code") if kind == "error" else None
            is_right = kind in ANSWERS and (kind != "error" or code in CODES)
            seen.answers[code or kind or "other"] += 1
        if not is_right:
            seen.object_to(f"answer {answer[:200]}", sent)


def _is_notification(frame: str | bytes) -> bool:
    try:
        message = json.loads(frame)
    except ValueError:
        return False
    return isinstance(message, dict) and message.get("id") is None


_PATHS = ["/reset", "/step", "/mcp", "/x/tasks", "/x/task", "/health", "/ws", "/state", "/schema"]


async def fuzz_http(url: str, count: int, chance: random.Random, seen: Verdicts) -> None:
    """Send ``count`` malformed requests."""
    for _ in range(count):
        path = chance.choice([*_PATHS, "/" + "%00" * chance.randrange(3), "/" + "a" * 3000])
        body = malformed(chance, templates=[{"action": {"direction": 1}}, *_RPC, *_VALID])
        data = body if isinstance(body, bytes) else body.encode(errors="surrogatepass")
        method = chance.choice(["POST", "POST", "POST", "GET", "PUT", "DELETE"])
        seen.sent += 1
        try:
            answer = await ask_http(url, method, path, body=data, timeout_s=ANSWER_WITHIN_S)
        except OSError as error:
            seen.object_to(f"{type(error).__name__}: {error}", f"{method} {path} {data[:80]}")
            continue
        seen.answers[f"http {answer.status}"] += 1
        found = answer.json
        detail = found.get("detail") if isinstance(found, dict) else None
        is_typed = isinstance(detail, dict) and detail.get("code") in CODES
        if answer.status >= 500 and not is_typed:
            seen.object_to(f"{method} {path}: {answer}", data)


def fuzz_bytes(url: str, count: int, chance: random.Random, seen: Verdicts) -> None:
    """Send ``count`` pieces of broken HTTP or broken WebSocket; any answer or end is right."""
    parts = urlsplit(url)
    for _ in range(count):
        seen.sent += 1
        with socket.create_connection((parts.hostname or "", parts.port or 80), 10) as raw:
            raw.settimeout(ANSWER_WITHIN_S)
            try:
                if chance.random() < 0.4:
                    raw.sendall(_broken_http(chance))
                else:
                    raw.sendall(_HANDSHAKE)
                    raw.recv(4096)
                    raw.sendall(_broken_frame(chance))
                raw.shutdown(socket.SHUT_WR)
                while raw.recv(65536):
                    pass
                seen.answers["bytes ended"] += 1
            except TimeoutError:
                seen.object_to("a broken connection is kept open", "bytes")
            except OSError:  # reset, or (ENOTCONN, no ConnectionError) reset before the shutdown
                seen.answers["bytes reset"] += 1


_HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def _broken_http(chance: random.Random) -> bytes:
    return chance.choice(
        [
            os.urandom(300),
            b"GET / HTTP/9.9\r\n\r\n",
            b"POST /reset HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
            b"POST /reset HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{}",
            b"POST /reset HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
            b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
            b"GET /health HTTP/1.1\r\n" + b"X-Y: z\r\n" * 5000 + b"\r\n",
            _HANDSHAKE.replace(b"Version: 13", b"Version: 99"),
            _HANDSHAKE.replace(b"dGhlIHNhbXBsZSBub25jZQ==", b"short"),
        ]
    )


def _broken_frame(chance: random.Random) -> bytes:
    return chance.choice(
        [
            _frame(0x81, b"\xff\xfe\xfa"),  # text that is no UTF-8
            _frame(0x83, b"reserved"),
            _frame(0xF1, b"reserved bits"),
            b"\x81\x05hello",  # not masked
            _frame(0x89, b"x" * 126),  # a ping that is too long
            _frame(0x80, b"a continuation of nothing"),
            _frame(0x88, b"\x00"),  # half a close code
            _frame(0x88, struct.pack("!H", 999)),
            b"\x81\xff" + struct.pack("!Q", 2**62) + b"abcd",
            b"\x81\xff" + struct.pack("!Q", 17 * 1024 * 1024) + b"abcd" + b"x" * 65536,
            _frame(0x81, json.dumps({"type": "reset"}).encode())[:-3],
        ]
    )


def _frame(head: int, payload: bytes) -> bytes:
    length = bytes([0x80 | len(payload)]) if len(payload) < 126 else b""
    if not length:
        length = b"\xfe" + struct.pack("!H", len(payload))
    return bytes([head]) + length + b"\x00\x00\x00\x00" + payload


async def fuzz_size(url: str, seen: Verdicts) -> None:
    """A frame of 17 MB is refused with 1009, one of 15 MiB is not."""
    for size, is_refused in ((17 * 1024 * 1024, True), (15 * 1024 * 1024, False)):
        async with connect(
            url.replace("http", "ws", 1) + "/ws", max_size=None, compression=None, proxy=None
        ) as socket_:
            seen.sent += 1
            with suppress(WebSocketException):  # the close is read below
                await socket_.send('{"type":"' + "x" * size + '"}')
            answer = await _answer(socket_)
            _judge(seen, answer, f"{size} bytes", "/ws")
            if (answer == 1009) is not is_refused:
                seen.object_to(f"{answer}", f"{size} bytes")


def memory_mb(pid: int) -> float:
    """Resident memory of a process and its children."""
    process = psutil.Process(pid)
    family = [process, *process.children(recursive=True)]
    return sum(each.memory_info().rss for each in family) / 2**20
