"""100,000 malformed frames and requests against a server: python benchmarks/fuzz.py [WORLD].

Prints one JSON object; exit code 1 if an answer was one that no server may give, if the server
ended, or if its memory grew.
"""

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.fuzz_run import run_fuzz
from support.server_process import served

GROWTH_MB = 16.0


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("world", nargs="?", default="quick-walk")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    started = time.monotonic()
    with served("corral", given.world, "--sessions", "64", "--lease-s", "2") as server:
        report = asyncio.run(
            run_fuzz(server, count=given.count, rounds=given.rounds, seed=given.seed)
        )
    seconds = round(time.monotonic() - started, 1)
    verdicts = report.verdicts
    print(
        json.dumps(
            {
                "sent": verdicts.sent,
                "answers": dict(verdicts.answers.most_common()),
                "wrong": len(verdicts.wrong),
                "first_wrong": verdicts.wrong[:5],
                "memory_mb": report.memory_mb,
                "is_alive": report.is_alive,
                "seconds": seconds,
            }
        )
    )
    is_flat = report.memory_mb[-1] - report.memory_mb[0] < GROWTH_MB
    sys.exit(0 if report.is_alive and is_flat and not verdicts.wrong else 1)


if __name__ == "__main__":
    main()
