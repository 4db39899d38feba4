"""What no client sends: every answer is one that a server may give, and nothing is left behind."""

import asyncio
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.fuzz_run import run_fuzz
from support.server_process import ServerProcess, served

COUNT, ROUNDS = 3000, 3
GROWTH_MB = 16.0


@pytest.fixture(scope="module", params=["quick-walk", "tools"])
def fuzzed(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    with served("corral", request.param, "--sessions", "64", "--lease-s", "2") as server:
        yield server


async def test_malformed_frames_and_requests(fuzzed: ServerProcess) -> None:
    report = await run_fuzz(fuzzed, count=COUNT, rounds=ROUNDS, seed=7)
    assert report.verdicts.wrong == []
    assert report.is_alive
    assert report.memory_mb[-1] - report.memory_mb[0] < GROWTH_MB, report.memory_mb
    for answer in ("INVALID_JSON", "UNKNOWN_TYPE", "VALIDATION_ERROR", "OUT_OF_ORDER", "json-rpc"):
        assert report.verdicts.answers[answer] > 0, answer
    assert report.verdicts.answers["close 1009"] > 0


def test_slow_peers_do_not_keep_others_waiting(fuzzed: ServerProcess) -> None:
    slow = [socket.create_connection(("127.0.0.1", fuzzed.port), 5) for _ in range(60)]
    try:
        for place, connection in enumerate(slow):
            connection.sendall([b"GET /ws HT", b"POST /reset HTTP/1.1\r\nContent-Len"][place % 2])
        started = time.monotonic()
        with urllib.request.urlopen(f"{fuzzed.url}/health", timeout=5) as answer:
            assert answer.status == 200
        assert time.monotonic() - started < 2.0
    finally:
        for connection in slow:
            connection.close()


def test_a_session_works_after_all_that(fuzzed: ServerProcess) -> None:
    from corral.serve.check import Status, Target, run_checks

    verdicts = asyncio.run(run_checks(Target(url=fuzzed.url)))
    assert [verdict for verdict in verdicts if verdict.status is Status.FAILED] == []


@pytest.mark.parametrize("mode", ["simulation", "production"])
def test_openapi_document_under_schemathesis(mode: str, tmp_path: Path) -> None:
    pytest.importorskip("schemathesis")
    with served("corral", "probe", "--mode", mode) as server:
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json"),
                *("--max-examples", "15", "--no-color", "--seed", "1", "--checks"),
                "not_a_server_error,response_schema_conformance,content_type_conformance",
            ],
            capture_output=True,
            text=True,
            timeout=110,
            cwd=tmp_path,  # it leaves a folder behind
        )
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-2000:]
