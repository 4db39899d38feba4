"""100,000 hostile tool calls over every way to write them: python benchmarks/fuzz_tools.py.

Each turn takes the whole path of a run: sampled ids, reading, checking, execution in an environment
with tools of every kind, answers, and the ids that carry them. With --growth, texts with anything
repeated in them are read at several lengths instead: time must grow with length.

Prints one JSON object for each way to write calls, and one for all; exit code 1 if anything was
executed that must not be, anything was left unanswered or miscounted, an exception escaped, memory
grew, or reading took more than its time.
"""

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import psutil

from support.tool_fuzz.formats import chat_formats
from support.tool_fuzz.judge import Verdicts
from support.tool_fuzz.phrases import Phrases
from support.tool_fuzz.pump import slow_texts
from support.tool_fuzz.run import run_fuzz

ROUNDS = 4
GROWTH_MB = 64.0
"""Most that memory may grow between the first and the last round over one way to write calls."""
SLOWEST_PARSE_S = 2.0
"""Processor time of reading any one turn; the longest turns have a megabyte."""
TOTALS = ("turns", "calls", "executed", "texts")


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--syntax", action="append", help="only this way to write calls")
    parser.add_argument("--growth", action="store_true", help="look for slow texts instead")
    given = parser.parse_args()
    started = time.monotonic()
    names = given.syntax or list(chat_formats())
    count = 0 if given.growth else -(-given.count // len(names))
    jobs = [(name, count, given.seed) for name in names]
    totals: Counter[str] = Counter()
    wrong = 0
    for report in _reports(jobs, given.processes):
        print(json.dumps(report, ensure_ascii=False), flush=True)
        totals.update({key: each for key, each in report.items() if key in TOTALS})
        wrong += len(report["wrong"])
    seconds = round(time.monotonic() - started, 1)
    print(json.dumps({"syntaxes": len(names), **totals, "wrong": wrong, "seconds": seconds}))
    sys.exit(1 if wrong else 0)


def _reports(jobs: list[tuple[str, int, int]], processes: int) -> Iterator[dict[str, Any]]:
    if processes < 2:
        yield from map(_fuzz, jobs)
        return
    with multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(_fuzz, jobs, chunksize=1)


def _fuzz(job: tuple[str, int, int]) -> dict[str, Any]:
    name, count, seed = job
    return _hostile(name, count, seed) if count else _growth(name)


def _growth(name: str) -> dict[str, Any]:
    tried, slow = slow_texts(Phrases.of(chat_formats()[name]))
    wrong = [f"{each.text!r:.200}: {each.short_s:.3f} s, {each.long_s:.3f} s" for each in slow]
    return {"syntax": name, "texts": tried, "wrong": wrong}


def _hostile(name: str, count: int, seed: int) -> dict[str, Any]:
    seen = Verdicts()
    memory: list[float] = []
    for number in range(ROUNDS):
        seen.join(run_fuzz(name, count=count // ROUNDS + 1, seed=seed * ROUNDS + number))
        memory.append(round(psutil.Process().memory_info().rss / 2**20, 1))
    if memory[-1] - memory[0] > GROWTH_MB:
        seen.wrong.append(f"memory grew: {memory} MB")
    if seen.slowest[0] > SLOWEST_PARSE_S:
        seen.wrong.append(f"reading took {seen.slowest}")
    return {
        "syntax": name,
        "turns": seen.turns.total(),
        "kinds": dict(seen.turns.most_common()),
        "calls": seen.calls,
        "malformed": seen.malformed,
        "refused": seen.refused,
        "executed": seen.executed,
        "slowest_parse_s": round(seen.slowest[0], 3),
        "memory_mb": memory,
        "wrong": seen.wrong[:20],
    }


if __name__ == "__main__":
    main()
