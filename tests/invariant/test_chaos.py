"""Over a network that drops, stalls, repeats and reorders, no session sees a wrong answer."""

from collections import Counter

import pytest

from support.chaos import Plan
from support.chaos_run import PLAIN, RESUMING, Report, run_chaos
from support.server_process import served

SESSIONS, STEPS = 16, 60
LEASE_S = 8.0
EVERYTHING = Plan(
    seed=20260101, drop=0.01, half_open=0.002, stall=0.003, duplicate=0.02, reorder=0.01
)
"""What ``corral.v1`` sessions survive."""
LOSSES = Plan(seed=20260102, drop=0.003, half_open=0.001, stall=0.003)
"""Plain OpenEnv has no request ids, so repeated frames would be repeated steps."""


async def disturbed(world: str, plan: Plan, *, is_plain: bool, kills: int) -> Report:
    with served("corral", world, "--sessions", "32", "--lease-s", str(LEASE_S)) as server:
        return await run_chaos(
            server,
            plan,
            options=PLAIN if is_plain else RESUMING,
            sessions=SESSIONS,
            steps=STEPS,
            kills=kills,
            time_limit_s=100.0,
            lease_s=LEASE_S,
        )


@pytest.mark.timeout(150)
async def test_with_resume_every_episode_is_the_undisturbed_one() -> None:
    report = await disturbed("quick-walk", EVERYTHING, is_plain=False, kills=1)
    assert report.different == []
    assert report.losses == Counter()
    assert report.equal == SESSIONS
    assert report.leaked == 0
    assert report.kills == 1
    for event in ("drop", "half_open", "stall", "duplicate", "reorder"):
        assert report.events[event] > 0, event


@pytest.mark.timeout(150)
async def test_without_resume_every_loss_is_a_session_lost_error() -> None:
    report = await disturbed("quick-walk", LOSSES, is_plain=True, kills=1)
    assert report.different == []
    assert report.equal == SESSIONS
    assert report.losses["SessionLostError"] > 0
    assert set(report.losses) <= {"SessionLostError"}
    assert report.leaked == 0


@pytest.mark.timeout(150)
async def test_a_world_that_may_not_be_repeated_is_lost_with_its_server() -> None:
    plan = Plan(seed=3, drop=0.01, duplicate=0.01)
    report = await disturbed("unrepeatable-walk", plan, is_plain=False, kills=1)
    assert report.different == []
    assert report.equal == SESSIONS
    assert set(report.losses) <= {"SessionLostError"}
    assert report.leaked == 0
