"""``corral check`` as it is typed."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corral.serve.ports import free_port
from support.server_process import ServerProcess, served

TESTS = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def broken() -> Iterator[ServerProcess]:
    with served("broken", "all") as server:
        yield server


def corral(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "corral.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ | {"PYTHONPATH": str(TESTS), "COLUMNS": "200"},
    )


def verdicts(ran: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    return {check["id"]: check for check in json.loads(ran.stdout)["checks"]}


@pytest.mark.parametrize("world", ["echo", "guess_number", "wordle"])
def test_a_built_in_world_passes(world: str) -> None:
    ran = corral("check", world, "--json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    told = json.loads(ran.stdout)
    assert told["failed"] == 0
    assert told["passed"] > 35


def test_a_class_is_served_and_examined() -> None:
    ran = corral("check", "support.walk_world:WalkWorld")
    assert ran.returncode == 0, ran.stderr
    assert "0 failed" in ran.stderr
    assert "the world has no MCP tools" in ran.stderr
    assert ran.stdout == ""


def test_a_fault_is_exit_code_1_and_is_told(broken: ServerProcess) -> None:
    ran = corral("check", f"{broken.url}/negative-seed-is-500")
    assert ran.returncode == 1
    assert "http-seed: POST /reset refuses a negative seed" in ran.stderr
    assert "expected status 422" in ran.stderr
    ran = corral("check", f"{broken.url}/negative-seed-is-500", "--json")
    assert ran.returncode == 1
    assert verdicts(ran)["http-seed"]["status"] == "failed"


def test_actions_given_make_checks_run(broken: ServerProcess) -> None:
    ran = corral(
        *("check", f"{broken.url}/exception-ends-the-session", "--json"),
        *("--action", '{"tool_name": "add", "arguments": {"a": 1, "b": 2}}'),
        *("--probe", 'failing={"tool_name": "explode"}'),
    )
    assert verdicts(ran)["execution-error"]["status"] == "failed"
    without = corral("check", f"{broken.url}/exception-ends-the-session", "--json")
    assert verdicts(without)["execution-error"]["status"] == "skipped"


def test_reset_is_sent_what_it_needs(broken: ServerProcess) -> None:
    ran = corral("check", f"{broken.url}/none", "--json", "--reset", '{"level": 3}')
    assert ran.returncode == 0
    ran = corral("check", f"{broken.url}/none", "--json", "--reset", '{"seed": -5}')
    assert verdicts(ran)["http-reset"]["status"] == "passed"  # seed 1 replaces it
    assert ran.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--action", "{"], "--action"),
        (["--reset", "[1]"], "is no JSON object"),
        (["--probe", "swift={}"], "failing, slow, large, breaking"),
    ],
)
def test_wrong_use_is_exit_code_2(arguments: list[str], told: str) -> None:
    ran = corral("check", f"http://127.0.0.1:{free_port()}", *arguments)
    assert ran.returncode == 2
    assert told in ran.stderr


def test_no_server_is_exit_code_2() -> None:
    ran = corral("check", f"http://127.0.0.1:{free_port()}")
    assert ran.returncode == 2
    assert "No server answers" in ran.stderr
