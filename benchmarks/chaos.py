"""Sessions over a chaotic network at full size: python benchmarks/chaos.py [--plain].

64 sessions of 200 steps through a proxy that drops, half-opens, stalls, repeats and reorders, while
the server is killed and started again. Prints one JSON object; exit code 1 if anything was wrong.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.chaos import Plan
from support.chaos_run import PLAIN, RESUMING, run_chaos
from support.server_process import served

LEASE_S = 20.0


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--plain", action="store_true", help="without the corral.v1 subprotocol")
    parser.add_argument("--sessions", type=int, default=64)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.plain:
        # As nothing survives a loss, episodes must be likely to end without one.
        plan = Plan(seed=given.seed, drop=0.001, half_open=0.0002, stall=0.002)
    else:
        plan = Plan(
            seed=given.seed, drop=0.01, half_open=0.002, stall=0.003, duplicate=0.02, reorder=0.01
        )
    slots = str(given.sessions * 2)
    with served("corral", "quick-walk", "--sessions", slots, "--lease-s", str(LEASE_S)) as server:
        report = asyncio.run(
            run_chaos(
                server,
                plan,
                options=PLAIN if given.plain else RESUMING,
                sessions=given.sessions,
                steps=given.steps,
                kills=given.kills,
                time_limit_s=1800.0,
                lease_s=LEASE_S,
            )
        )
    print(json.dumps({"mode": "plain" if given.plain else "resume", **vars(report)}))
    allowed = {"SessionLostError"} if given.plain else set[str]()
    is_right = (
        report.equal == given.sessions
        and not report.different
        and not report.leaked
        and set(report.losses) <= allowed
    )
    sys.exit(0 if is_right else 1)


if __name__ == "__main__":
    main()
