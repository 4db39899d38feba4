"""Clients and the process they live in: its end, its exit handlers, its imports."""

import subprocess
import sys
import time

import pytest

from support.scripted_peer import Peer, ScriptedPeer

AT_EXIT = """
import atexit, sys
from corral import EnvClient

client = EnvClient(sys.argv[1]).sync()
client.reset()

def last_words():
    print(client.step({}).observation, flush=True)

atexit.register(last_words)
"""

LIGHT = """
import sys, time
started = time.perf_counter()
from corral import EnvClient, RemoteEnvironment, SessionLostError
print(time.perf_counter() - started)
heavy = {"torch", "transformers", "fastapi", "starlette", "uvicorn", "mcp", "httpx", "numpy"}
print(sorted(heavy & set(sys.modules)))
"""


@pytest.mark.report("P092")
def test_a_client_works_in_an_exit_handler_and_frees_its_slot():
    async def handler(peer: Peer, _: int) -> None:
        await peer.hello()
        await peer.answer("reset")
        await peer.answer("last words")
        await peer.read()
        await peer.close()

    with ScriptedPeer(handler) as server:
        done = subprocess.run(
            [sys.executable, "-c", AT_EXIT, server.url],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.stdout, done.stderr) == ("{'text': 'last words'}\n", "")
        assert [frame["type"] for frame in server.frames] == ["reset", "step", "close"]


def test_a_process_does_not_wait_long_for_a_server_that_hangs():
    async def handler(peer: Peer, _: int) -> None:
        await peer.hello()
        await peer.answer("reset")
        await peer.read()
        peer.socket.transport.pause_reading()
        await peer.socket.wait_closed()

    code = "import sys; from corral import EnvClient; EnvClient(sys.argv[1]).sync().reset()"
    keeps = code.replace("EnvClient(sys.argv[1])", "(c := EnvClient(sys.argv[1]))")
    with ScriptedPeer(handler) as server:
        started = time.monotonic()
        subprocess.run([sys.executable, "-c", keeps, server.url], timeout=60, check=True)
        assert time.monotonic() - started < 20


def test_the_client_is_light_to_import():
    lines = subprocess.run(
        [sys.executable, "-c", LIGHT], capture_output=True, text=True, timeout=60, check=True
    ).stdout.splitlines()
    assert lines[1] == "[]"
    assert float(lines[0]) < 2.0  # half a second on a machine that does nothing else
