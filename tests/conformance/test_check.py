"""The checks agree on two servers that are right, and find each thing that is wrong."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from corral.errors import UsageError
from corral.serve.check import CHECKS, Probes, Status, Target, Verdict, run_checks
from corral.serve.ports import free_port
from support.broken_server import FAULTS
from support.server_process import ServerProcess, served

IMPLEMENTATIONS = ("official", "corral")
SERVED = [
    ("probe", "simulation", "4"),
    ("probe", "production", "1"),
    ("tools", "simulation", "1"),
    ("tools", "production", "2"),
    ("walk", "simulation", "2"),
]
NEEDS_MORE = {
    "production": "the server is in simulation mode",
    "mcp-without-tools": "the world has MCP",
    "isolation": "the server has one slot only",
}


def examine(url: str, probes: Probes, *, timeout_s: float = 10.0) -> list[Verdict]:
    target = Target(url=url, probes=probes, timeout_s=timeout_s, refusal_wait_s=5.0)
    return asyncio.run(run_checks(target))


@pytest.fixture(scope="module")
def broken() -> Iterator[ServerProcess]:
    with served("broken", "all") as server:
        yield server


@pytest.mark.parametrize(("world", "mode", "sessions"), SERVED)
def test_same_verdicts_for_the_official_server_and_for_corral(
    probes: dict[str, Probes], world: str, mode: str, sessions: str
) -> None:
    def verdicts_of(implementation: str) -> list[tuple[str, Status, str]]:
        with served(implementation, world, "--mode", mode, "--sessions", sessions) as server:
            verdicts = examine(server.url, probes[world])
        assert [v for v in verdicts if v.status is Status.FAILED] == [], implementation
        return [(v.id, v.status, v.reason) for v in verdicts]

    with ThreadPoolExecutor() as pool:  # several checks wait for what must not happen
        lists = list(pool.map(verdicts_of, IMPLEMENTATIONS))
    assert lists[0] == lists[1]


def test_only_what_is_not_there_is_skipped(probes: dict[str, Probes]) -> None:
    with served("official", "probe", "--sessions", "2") as server:
        verdicts = examine(server.url, probes["probe"])
    skipped = {v.id: v.reason for v in verdicts if v.status is Status.SKIPPED}
    tools = {"tools-list", "tools-call", "tools-call-errors"}
    tools |= {"step-list-tools", "step-call-tool", "step-tool-failure"}
    long = {check.id for check in CHECKS if check.is_thorough}
    assert set(skipped) == tools | long | {"production"}
    assert skipped["production"] == NEEDS_MORE["production"]


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_large_frames_pass_both_ways(probes: dict[str, Probes], implementation: str) -> None:
    large = [check for check in CHECKS if check.id in ("large-observation", "large-action")]
    with served(implementation, "probe", "--sessions", "2") as server:
        target = Target(url=server.url, probes=probes["probe"])
        verdicts = asyncio.run(run_checks(target, checks=large, is_thorough=True))
    assert [(v.id, v.status, v.came) for v in verdicts] == [
        ("large-observation", Status.PASSED, ""),
        ("large-action", Status.PASSED, ""),
    ]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_by_its_check_and_no_other(
    broken: ServerProcess, probes: dict[str, Probes], fault: str
) -> None:
    verdicts = examine(f"{broken.url}/{fault}", probes["broken"], timeout_s=3.0)
    assert {v.id for v in verdicts if v.status is Status.FAILED} == FAULTS[fault]


def test_every_check_but_the_long_ones_finds_a_planted_fault() -> None:
    found = set[str]().union(*FAULTS.values())
    unproven = {check.id for check in CHECKS if not check.is_thorough} - found
    # The broken server has MCP, and its WebSocket library answers pings whatever it does.
    assert unproven == {"mcp-without-tools", "ping", "session-attach"} - found


def test_a_failure_says_what_was_sent_what_came_and_what_was_expected(
    broken: ServerProcess, probes: dict[str, Probes]
) -> None:
    verdicts = examine(f"{broken.url}/health-is-degraded", probes["broken"])
    failure = next(v for v in verdicts if v.status is Status.FAILED)
    assert failure.sent == "GET /health"
    assert "degraded" in failure.came
    assert "healthy" in failure.expected


def test_no_server_at_all_is_wrong_use_and_not_a_list_of_failures() -> None:
    with pytest.raises(UsageError, match="No server answers"):
        examine(f"http://127.0.0.1:{free_port()}", Probes())
