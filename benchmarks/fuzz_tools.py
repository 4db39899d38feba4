"""100,000 hostile tool calls over every way to write them: python benchmarks/fuzz_tools.py.

Each turn takes the whole path of a run: sampled ids, reading, checking, execution in an environment
with tools of every kind, answers, and the ids that carry them. Then texts with anything repeated in
them are read at two lengths: time must grow with length.

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


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--syntax", action="append", help="only this way to write calls")
    given = parser.parse_args()
    started = time.monotonic()
    names = given.syntax or list(chat_formats())
    jobs = [(name, -(-given.count // len(names)), given.seed) for name in names]
    reports: list[dict[str, Any]] = []
    for report in _reports(jobs, given.processes):
        print(json.dumps(report, ensure_ascii=False), flush=True)
        reports.append(report)
    totals: Counter[str] = Counter()
    for report in reports:
        totals.update({key: report[key] for key in ("turns", "calls", "executed")})
    wrong = sum(len(report["wrong"]) + len(report["slow"]) for report in reports)
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
    seen = Verdicts()
    memory: list[float] = []
    for number in range(ROUNDS):
        seen.join(run_fuzz(name, count=count // ROUNDS + 1, seed=seed * ROUNDS + number))
        memory.append(round(psutil.Process().memory_info().rss / 2**20, 1))
    if memory[-1] - memory[0] > GROWTH_MB:
        seen.wrong.append(f"memory grew: {memory} MB")
    if seen.slowest[0] > SLOWEST_PARSE_S:
        seen.wrong.append(f"reading took {seen.slowest}")
    tried, slow = slow_texts(Phrases.of(chat_formats()[name]))
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
        "pumped": tried,
        "slow": [f"{each.text!r:.200}: {each.short_s:.3f} s, {each.long_s:.3f} s" for each in slow],
        "wrong": seen.wrong[:20],
    }


if __name__ == "__main__":
    main()
