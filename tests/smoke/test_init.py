"""``corral init demo && cd demo``, its two commands as printed, and the official client plays."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from openenv.cli._validation import validate_running_environment
from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

from corral.serve.scaffold import LONGEST_NAME, scaffold
from support.served_command import environment, serving

URL = "http://127.0.0.1:8000"
"""The README's: its commands are run as they are printed."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    subprocess.run(
        ["corral", "init", "demo"], cwd=folder, env=environment(), check=True, timeout=60
    )
    return folder / "demo"


def commands(demo: Path) -> list[str]:
    readme = (demo / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^```sh\n(.*?)\n```$", readme, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def served(demo: Path):
    if not _is_free(8000):
        pytest.skip("port 8000, which the README names, is taken by another program")
    serve, _ = commands(demo)
    with serving(serve.split(), 8000, folder=demo) as url:
        assert url == URL
        yield url


@pytest.mark.report("P194")
def test_its_tests_pass_with_the_command_of_the_readme(demo: Path):
    _, test = commands(demo)
    ran = subprocess.run(
        test.split(), cwd=demo, env=environment(), capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    assert "Ran 5 tests" in ran.stderr


def test_the_official_validator_passes_the_package(demo: Path):
    ran = subprocess.run(
        ["openenv", "validate", ".", "--skip-build", "--json"],
        cwd=demo,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout
    results = json.loads(ran.stdout)["results"]
    statuses = {result["check_id"]: result["status"] for result in results}
    assert statuses["static.manifest"] == "pass"
    assert not {"fail", "error"} & set(statuses.values())


@pytest.mark.parametrize("name", ["demo", "x" * LONGEST_NAME])
def test_its_files_have_nothing_to_complain_about(tmp_path: Path, name: str):
    folder = scaffold(name, parent=tmp_path).folder
    for command in (["ruff", "check", "--no-cache", "."], ["ruff", "format", "--check", "."]):
        ran = subprocess.run(
            [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, timeout=60
        )
        assert ran.returncode == 0, ran.stdout


@pytest.mark.report("P194")
async def test_the_official_client_plays_an_episode(served: str):
    async with GenericEnvClient(base_url=served) as client:
        result = await client.reset(seed=3)
        assert "treasure" in result.observation["result"]
        row = column = 1
        while not result.done:
            arguments = {"row": row, "column": column}
            action = {"type": "call_tool", "tool_name": "dig", "arguments": arguments}
            result = await client.step(action)
            answer = result.observation["result"]
            if not result.done:
                row, column = _next(row, column, int(re.search(r"(\d+) steps", answer)[1]))
        assert "found" in answer
        assert result.reward > 0
        state = await client.state()
        assert state["step_count"] >= 1
        assert "treasure" not in str(state)


async def test_the_official_tool_client_finds_the_tool(served: str):
    async with MCPToolClient(base_url=served) as client:
        await client.reset(seed=3)
        assert "dig" in [tool.name for tool in await client.list_tools()]
        assert "steps away" in await client.call_tool("dig", row=1, column=1)


@pytest.mark.report("P194")
def test_the_official_validator_passes_the_served_environment(served: str):
    report = validate_running_environment(served)
    failed = [criterion for criterion in report["criteria"] if not criterion["passed"]]
    assert failed == []
    assert report["passed"]


def _next(row: int, column: int, distance: int) -> tuple[int, int]:
    """Where to dig after the north-west corner: along the diagonal that the answer names."""
    if (row, column) == (1, 1):
        return (1, 1 + distance) if distance <= 4 else (distance - 3, 5)
    return row + distance // 2, column - distance // 2


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
