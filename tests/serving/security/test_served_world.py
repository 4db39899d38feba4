"""A world behind its token: the official client, ours, and the command that serves it."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from openenv.core.generic_client import GenericEnvClient

from corral.serve import create_app
from corral.serve.client import AuthenticationError, EnvClient
from corral.serve.client.launchers import wait_until_ready
from corral.serve.ports import free_port
from corral.serve.security_rules import SecurityRules
from support.mcp_worlds import Safe
from support.served_app import served

TOKEN = "correct-horse-battery"
OPEN = {"type": "call_tool", "tool_name": "turn", "arguments": {"to": 7}}


async def test_both_clients_play_with_the_token_and_neither_without():
    app = create_app(Safe, security=SecurityRules(token=TOKEN))
    async with served(app) as address:
        url = f"http://{address}"
        async with EnvClient(url, token=TOKEN) as client:
            await client.reset()
            assert (await client.step(OPEN)).reward == 1.0
        official = GenericEnvClient(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"})
        async with official:
            await official.reset()
            assert (await official.step(OPEN)).reward == 1.0
        with pytest.raises(AuthenticationError) as caught:
            await EnvClient(url, token="wrong-wrong").reset()
        assert "wrong-wrong" not in str(caught.value)
        with pytest.raises(ConnectionError):
            await GenericEnvClient(base_url=url).connect()
        assert app.state.sessions.slots.active_sessions == 0


@pytest.mark.report("P212")
def test_a_public_server_without_a_token_does_not_start():
    ran = subprocess.run(
        [*COMMAND, "echo", "--host", "0.0.0.0", "--port", "0"],
        env=without_rules(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 2
    assert "CORRAL_TOKEN" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads what other processes can see")
def test_the_token_is_neither_in_the_command_nor_in_what_the_server_writes():
    port = free_port()
    process = subprocess.Popen(
        [*COMMAND, "echo", "--host", "0.0.0.0", "--port", str(port)],
        env=without_rules() | {"CORRAL_TOKEN": TOKEN},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        asyncio.run(wait_until_ready(url, timeout_s=30))
        with EnvClient(url, token=TOKEN).sync() as client:
            client.reset()
        with pytest.raises(AuthenticationError):
            EnvClient(url, token="another-secret").sync().reset()
        command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
    finally:
        process.send_signal(signal.SIGINT)
        written, _ = process.communicate(timeout=30)
    assert TOKEN.encode() not in command
    assert TOKEN.encode() not in written
    assert b"another-secret" not in written


COMMAND = [sys.executable, "-m", "corral.cli.main", "serve"]


def without_rules() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("CORRAL_")}
