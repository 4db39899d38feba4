"""Load on one server worker: Corral's server against the official OpenEnv one.

Both serve the same cheap world (``serve_world.py``) and share the machine with the load, a process
of its own that plays on 64 connections, each sending its next step when the last is answered. Sides
take turns (A B B A ...), and the ratios are medians over the pairs: a machine's own speed changes
within minutes. Then Corral's server alone holds 1,000 sessions with one step a second each. What is
required, or the exit status is 1:

- at least 2.5 times the official server's steps/s, and at most half its 99th percentile;
- 1,000 sessions without an error, in at most 250 MB;
- at most 80 MB before anybody connects, and ready within 1.5 s.

    python benchmarks/serve_load.py             # 7 measurements a side, about three minutes
    python benchmarks/serve_load.py --seconds 1 --runs 1 --sessions 100    # does it still run?
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from frames import PlayerProtocol

CONNECTIONS = 64
REQUIRED_RATIO, REQUIRED_P99_SHARE = 2.5, 0.5
MOST_IDLE_MB, MOST_BASE_MB, MOST_READY_S = 250, 80, 1.5
PORT = 8931
HERE = Path(__file__).resolve().parent
COMMANDS = {
    "corral": [
        *(sys.executable, "-m", "corral.cli.main", "serve", f"{HERE / 'serve_world.py'}:Counter"),
        *("--port", str(PORT), "--max-sessions", "1200"),
    ],
    "official": [sys.executable, str(HERE / "serve_world.py"), "official", str(PORT)],
}


def main() -> int:
    """Measure, print tables, and say whether everything required was reached."""
    args = _parse_arguments()
    if args.play:
        print(json.dumps(asyncio.run(play(args.play, args.seconds, args.pause))))
        return 0
    _allow_many_sockets()
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in COMMANDS}
    for number in range(args.runs):
        for side in list(COMMANDS)[:: 1 if number % 2 == 0 else -1]:
            with server(side) as started:
                load = _load(CONNECTIONS, args.seconds)
                runs[side].append({**started.facts(), **load})
            print(_line(side, runs[side][-1]), flush=True)
    with server("corral") as started:
        idle = _load(args.sessions, 4 * args.seconds, pause_s=1.0)
        idle["rss_mb"] = started.rss_mb()
    return _report(runs, idle, args.sessions)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7, help="measurements of each side")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of one measurement")
    parser.add_argument("--sessions", type=int, default=1000, help="sessions held with 1 step/s")
    parser.add_argument("--play", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--pause", type=float, default=0.0, help=argparse.SUPPRESS)
    return parser.parse_args()


@dataclass(kw_only=True)
class Started:
    """A server that is ready."""

    process: subprocess.Popen[bytes]
    ready_s: float
    base_mb: float = 0.0

    def rss_mb(self) -> float:
        """Resident memory now."""
        return psutil.Process(self.process.pid).memory_info().rss / 1e6

    def facts(self) -> dict[str, float]:
        """What was seen before anybody connected."""
        return {"ready_s": self.ready_s, "base_mb": self.base_mb}


@contextmanager
def server(side: str) -> Iterator[Started]:
    """One of the servers, ready, while the block runs."""
    began = time.perf_counter()
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    # The official server prints a traceback for every player that hangs up.
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(COMMANDS[side], env=environment, stdout=log, stderr=log)
        try:
            while not _is_healthy():
                if process.poll() is not None:
                    log.seek(0)
                    raise SystemExit(f"The {side} server ended:\n{log.read().decode()}")
                time.sleep(0.01)
            started = Started(process=process, ready_s=time.perf_counter() - began)
            started.base_mb = started.rss_mb()
            yield started
        finally:
            process.kill()
            process.wait()


def _is_healthy() -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=1) as answer:
            return answer.status == 200
    except OSError:
        return False


def _load(connections: int, seconds: float, pause_s: float = 0.0) -> dict[str, Any]:
    """Play in a process of its own, so that the load has an interpreter to itself."""
    command = [sys.executable, __file__, "--play", str(connections)]
    command += ["--seconds", str(seconds), "--pause", str(pause_s)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"The players failed with status {ended.returncode}.")
    return json.loads(ended.stdout.splitlines()[-1])


async def play(connections: int, seconds: float, pause_s: float) -> dict[str, Any]:
    """Keep ``connections`` players busy; the first second of each is not counted."""
    _allow_many_sockets()
    loop = asyncio.get_running_loop()
    players: list[PlayerProtocol] = []
    for number in range(connections):
        delay_s = pause_s * number / connections  # no thundering herd
        player = PlayerProtocol(PORT, pause_s=pause_s, delay_s=delay_s)
        await loop.create_connection(lambda player=player: player, "127.0.0.1", PORT)
        await asyncio.wait_for(player.ready, 60)
        players.append(player)
    for player in players:
        player.start()
    await asyncio.sleep(1)
    for player in players:
        player.latencies_s.clear()
    began = time.perf_counter()
    await asyncio.sleep(seconds)
    wall_s = time.perf_counter() - began
    latencies = sorted(one for player in players for one in player.latencies_s)
    errors = sum(player.errors for player in players)
    return {
        "steps_per_s": len(latencies) / wall_s,
        "median_ms": latencies[len(latencies) // 2] * 1e3,
        "p99_ms": latencies[int(len(latencies) * 0.99)] * 1e3,
        "errors": errors,
    }


def _allow_many_sockets() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _line(side: str, run: dict[str, Any]) -> str:
    return (
        f"{side:8s} {run['steps_per_s']:,.0f} steps/s, median {run['median_ms']:.1f} ms, "
        f"p99 {run['p99_ms']:.1f} ms, ready in {run['ready_s']:.2f} s, base {run['base_mb']:.0f} MB"
    )


def _report(runs: dict[str, list[dict[str, Any]]], idle: dict[str, Any], sessions: int) -> int:
    middle = {
        side: {key: median(run[key] for run in done) for key in done[0]}
        for side, done in runs.items()
    }
    own, theirs = middle["corral"], middle["official"]
    pairs = list(zip(runs["corral"], runs["official"], strict=True))
    ratios = {
        key: median(ours[key] / other[key] for ours, other in pairs)
        for key in own
        if key != "errors"
    }
    print("\n| | Corral | official | ratio |\n|---|---|---|---|")
    for key, name in (
        ("steps_per_s", f"steps/s, {CONNECTIONS} connections"),
        ("median_ms", "median ms"),
        ("p99_ms", "99th percentile ms"),
        ("ready_s", "ready after s"),
        ("base_mb", "MB before anybody connects"),
    ):
        print(f"| {name} | {own[key]:,.2f} | {theirs[key]:,.2f} | {ratios[key]:.2f} |")
    print(
        f"\n{sessions} sessions, a step a second each: {idle['steps_per_s']:,.0f} steps/s, "
        f"p99 {idle['p99_ms']:.1f} ms, {idle['errors']} errors, {idle['rss_mb']:.0f} MB\n"
    )
    verdicts = {
        f"{REQUIRED_RATIO:g}x steps/s": ratios["steps_per_s"] >= REQUIRED_RATIO,
        "half the p99": ratios["p99_ms"] <= REQUIRED_P99_SHARE,
        "no errors": not idle["errors"] and not own["errors"],
        f"{MOST_IDLE_MB} MB": idle["rss_mb"] <= MOST_IDLE_MB,
        f"base {MOST_BASE_MB} MB": own["base_mb"] <= MOST_BASE_MB,
        f"ready in {MOST_READY_S:g} s": own["ready_s"] <= MOST_READY_S,
    }
    for name, is_reached in verdicts.items():
        print(f"{'passed' if is_reached else 'FAILED'}: {name}")
    return 0 if all(verdicts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
