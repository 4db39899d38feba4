"""The browser in a real Chromium, served from its virtual environment."""

import asyncio
import base64
import json
import os
import random
import signal
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from corral.chat.format import ChatFormat
from corral.errors import InfrastructureFault
from corral.hosting import NotInstalledError, find_environment, hosted_environment
from corral.records import Outcome
from corral.rollout.limits import Limits
from corral.serve.client import ToolCallError
from corral.worlds.browser.chromium import chromium_problem
from support.process_table import descendants, is_there, wait_until
from support.served_command import environment
from support.strange_browser import SPEC
from unit.rollout.conftest import TOKENIZER, Table

TESTS = Path(__file__).resolve().parents[1]


def reason_to_skip() -> str | None:
    """Why there is no browser to play with; None where there is."""
    problem = chromium_problem()
    if problem is not None:
        return problem
    try:
        hosted_environment("browser")
    except NotInstalledError as missing:
        return str(missing)
    return None


_REASON = reason_to_skip()
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(_REASON is not None, reason=str(_REASON)),
]


@pytest.fixture
async def strange() -> AsyncIterator[Any]:
    env: Any = find_environment(SPEC).factory()
    yield env
    await env.close()


@pytest.mark.stress
@pytest.mark.report("P113")
def test_twenty_episodes_six_at_a_time_leave_no_process_and_no_port():
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(TESTS)]))
    run = subprocess.run(
        [sys.executable, "-m", "support.browser_run"],
        env=environment() | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    told = json.loads(run.stdout)
    assert (told["won"], told["lost"]) == (20, [])
    assert told["zombies"] == []
    assert told["left"] <= 2, "the server and its supervisor"
    assert len(told["pids"]) > 20
    assert len(told["ports"]) == 1, "the server's; pages need none"
    assert wait_until(lambda: not any(map(is_there, told["pids"])))
    assert not is_listened_on(told["ports"][0])


@pytest.mark.stress
async def test_random_play_wins_a_third_of_what_one_click_decides():
    world = find_environment("corral.worlds.browser:ONE_CLICK")
    env: Any = world.factory()
    won: list[float] = []
    for number, row in enumerate(world.evaluation_tasks(60)):
        text, rng = await env.reset(**row), random.Random(number)
        while (action := world.policy("random")(env, text, rng)) is not None:
            text = await getattr(env, action.tool)(**action.arguments)
        won.append(await env.get_reward())
    await env.close()
    assert set(won) == {0.0, 1.0}
    assert fmean(won) == pytest.approx(0.32, abs=3 * 0.06)  # as its README says; three deviations


async def test_a_page_is_the_same_for_the_same_seed_whatever_was_played_before(strange: Any):
    first = await strange.reset(task="login-user", seed=5)
    assert "(more lines" not in first
    assert await strange.leave_behind() == "0 undefined"
    other = await strange.reset(task="login-user", seed=6)
    await strange.reset(task="click-tab", seed=1)
    assert await strange.leave_behind() == "0 undefined"
    assert await strange.reset(task="login-user", seed=5) == first
    assert other != first


async def test_what_cannot_be_done_is_told_and_costs_a_step(strange: Any):
    text = await strange.reset(task="click-test-2", seed=0)
    assert "Steps left: 10" in text
    for bid in ("999", "page.evaluate('1')"):
        with pytest.raises(ToolCallError, match=r"bid|brackets"):
            await strange.click(bid)
    assert "Steps left: 7" in await strange.noop()
    for _ in range(7):
        await strange.send_keys("Tab")
    assert strange.done
    assert await strange.get_reward() == 0.0
    assert strange.metrics == {"win": 0.0, "steps": 10.0, "failed_steps": 2.0}


async def test_a_page_reaches_nothing_but_its_own_files(strange: Any):
    await strange.reset(task="click-test", seed=0)
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    assert await strange.reach(f"http://127.0.0.1:{port}/") == "refused"
    assert await strange.reach("http://miniwob.invalid/miniwob/../../page.py") == "refused"
    assert await strange.reach("http://miniwob.invalid/miniwob/click-link.html") == "reached"
    server.close()


async def test_a_page_that_hangs_is_ended_and_the_next_environment_plays(strange: Any):
    await strange.reset(task="click-test", seed=0)
    pid = int(await strange.whereabouts())
    below = {pid, *descendants(pid)}
    assert len(below) > 4, "with a browser"
    await strange.hang()
    with pytest.raises(InfrastructureFault, match=r"CallTimeoutError: .*longer than 10 s"):
        await strange.click("13")
    with pytest.raises(InfrastructureFault, match="CallTimeoutError"):
        await strange.get_reward()
    assert wait_until(lambda: not any(map(is_there, below)))
    await assert_playable()


async def test_a_browser_killed_in_an_episode_is_an_infrastructure_fault(strange: Any):
    await strange.reset(task="click-test", seed=0)
    pid = int(await strange.whereabouts())
    below = {pid, *descendants(pid)}
    browser = next(one for one in sorted(below) if is_browser(one))
    os.kill(browser, signal.SIGKILL)
    with pytest.raises(InfrastructureFault, match=r"The browser (is gone|failed)"):
        await strange.click("13")
    await strange.close()
    assert wait_until(lambda: not any(map(is_there, below)))
    await assert_playable()


async def test_an_episode_whose_browser_was_killed_is_played_again(
    caplog: pytest.LogCaptureFixture,
):
    killed: list[int] = []

    def kill() -> str:
        """Kill the browser, once."""
        if not killed:
            below = sorted(descendants(os.getpid()))
            killed.append(next(one for one in below if is_browser(one)))
            os.kill(killed[0], signal.SIGKILL)
        return "done"

    table = Table(ChatFormat.for_tokenizer(TOKENIZER))  # type: ignore[arg-type]
    player = table.player(
        table.call("kill"),
        table.call("click", bid="13"),
        "I clicked it.",
        factory=find_environment(SPEC).factory,
        standalone=[kill],
        retries=1,
        limits=Limits(episode_tokens=9000),
    )
    (group,) = await player.play([table.task(task="click-test", seed=0)], 1)
    await player.aclose()
    (episode,) = group.group.episodes
    assert killed
    assert episode.outcome is Outcome.FINISHED
    assert "attempt 1 of 2" in caplog.text
    assert list(episode.rewards.values()) == [1.0]


async def test_the_page_is_shown_as_a_picture_too():
    env: Any = find_environment("corral.worlds.browser:PICTURES").factory()
    image, text = await env.reset(task="click-test-2", seed=0)
    kind, _, data = image["image"].partition(",")
    assert (image["type"], kind) == ("image", "data:image/png;base64")
    width, height = struct.unpack("!II", base64.b64decode(data)[16:24])
    assert (width, height) == (512, 330)
    assert text["text"].startswith("Goal: Click button ONE.")
    await env.close()


async def assert_playable() -> None:
    """The world still plays: the solver's first click wins."""
    env: Any = find_environment(SPEC).factory()
    await env.reset(task="click-test", seed=0)
    await env.click("13")
    assert await env.get_reward() == 1.0
    await env.close()


def is_browser(pid: int) -> bool:
    """Whether this is Chromium's first process, which starts all others."""
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return "--headless" in words and not any(word.startswith("--type=") for word in words)


def is_listened_on(port: int) -> bool:
    """Whether something listens there."""
    return f":{port:04X} 00000000:0000 0A " in Path("/proc/net/tcp").read_text()
