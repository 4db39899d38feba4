"""Many sessions walk through a chaotic network; what each of them saw, and what was lost."""

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from websockets.asyncio.client import connect

from corral.serve.client import (
    ClientOptions,
    EnvClient,
    ServerUnreachableError,
    SessionLostError,
)
from support.chaos import ChaosProxy, Plan, Supervisor
from support.server_process import ServerProcess
from support.walk_world import direction_of, undisturbed_walk

RESUMING = ClientOptions(
    message_timeout_s=90.0, queue_timeout_s=90.0, retransmit_after_s=1.0, liveness_timeout_s=2.0
)
PLAIN = ClientOptions(
    message_timeout_s=90.0,
    queue_timeout_s=90.0,
    ping_interval_s=1.0,
    ping_timeout_s=3.0,
    offers_resume=False,
)


@dataclass
class Report:
    """What came of a run."""

    sessions: int
    steps: int
    answers: int = 0
    """To steps, also of episodes that were lost later."""
    equal: int = 0
    """Sessions that saw an episode as it is without disturbance, to its end."""
    different: list[str] = field(default_factory=list[str])
    """The first difference of each session that saw something else."""
    losses: Counter[str] = field(default_factory=Counter[str])
    """Exceptions by type, of episodes that were under way."""
    refused_resets: int = 0
    """While the server was not there; tried again."""
    loss_texts: Counter[str] = field(default_factory=Counter[str])
    events: Counter[str] = field(default_factory=Counter[str])
    kills: int = 0
    leaked: int = 0
    seconds: float = 0.0


async def run_chaos(
    server: ServerProcess,
    plan: Plan,
    *,
    options: ClientOptions,
    sessions: int,
    steps: int,
    kills: int,
    time_limit_s: float,
    lease_s: float,
) -> Report:
    """Play; a session that loses its episode starts it again, and that is counted.

    Raises:
        TimeoutError: A session hangs.
    """
    report = Report(sessions=sessions, steps=steps)
    started = time.monotonic()
    proxy = ChaosProxy(upstream=server.url.replace("http", "ws", 1), plan=plan)
    supervisor = Supervisor(server)
    async with proxy.running():
        # Evenly over the episodes: by answers, as seconds mean something else on each machine.
        marks = [sessions * steps * (place + 1) // (kills + 1) for place in range(kills)]
        moments = [partial(_has_answers, report, mark) for mark in marks]
        # A group: where the server cannot be started again, the run ends instead of waiting.
        async with asyncio.timeout(time_limit_s), asyncio.TaskGroup() as group:
            group.create_task(supervisor.run(moments))
            for seed in range(sessions):
                group.create_task(_play(proxy.url, seed, steps, options, report))
    report.events, report.kills = proxy.counts, supervisor.kills
    report.leaked = await _leaked(server.url, within_s=lease_s + 10.0)
    report.seconds = time.monotonic() - started
    return report


async def _play(url: str, seed: int, steps: int, options: ClientOptions, report: Report) -> None:
    expected = undisturbed_walk(seed, steps)
    client: EnvClient[dict[str, int], dict[str, int], dict[str, object]] = EnvClient(
        url, options=options
    )
    try:
        while True:
            seen: list[tuple[int, int]] = []
            try:
                found = (await client.reset(seed=seed)).observation
                seen.append((found["place"], found["sight"]))
                for step in range(steps):
                    found = (await client.step({"direction": direction_of(step)})).observation
                    seen.append((found["place"], found["sight"]))
                    report.answers += 1
            except Exception as error:  # noqa: BLE001 – each kind is counted, and judged later
                if not seen and isinstance(error, ServerUnreachableError):
                    report.refused_resets += 1  # no episode was under way
                    await asyncio.sleep(0.2)
                    continue
                report.losses[type(error).__name__] += 1
                report.loss_texts[
                    f"{type(error).__name__}: {error} (after {len(seen)} answers)"
                ] += 1
                if not isinstance(error, SessionLostError | ServerUnreachableError):
                    report.different.append(f"{seed}: {type(error).__name__}: {error}")
                    return
            for place, (one, other) in enumerate(zip(seen, expected, strict=False)):
                if one != other:
                    report.different.append(f"{seed}: {one} instead of {other} at step {place}")
                    return
            if len(seen) == len(expected):
                report.equal += 1
                return
    finally:
        await client.close()


def _has_answers(report: Report, count: int) -> bool:
    return report.answers >= count


async def _leaked(url: str, *, within_s: float) -> int:
    """Sessions that are still there although nobody plays; those of lost greetings go by lease."""
    deadline = time.monotonic() + within_s
    while True:
        async with connect(
            url.replace("http", "ws", 1) + "/ws", subprotocols=["corral.v1"], proxy=None
        ) as socket:
            others = json.loads(await socket.recv())["data"]["active_sessions"] - 1
            await socket.send(json.dumps({"type": "close", "id": 1}))
        if others == 0 or time.monotonic() > deadline:
            return others
        await asyncio.sleep(0.5)
