"""Prints the table of results in the README from the ``summary.json`` files of runs.

::

    python benchmarks/results_table.py runs/*/summary.json

A row for each run: the share of evaluation games won by random play, by the model before training
and by the model after it, each with its 95 % interval (Wilson's), and the minutes of the whole run.
"""

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

COLUMNS = ("recipe", "seed", "games", "random play", "untrained", "trained", "minutes")


def table(summaries: Iterable[Mapping[str, Any]]) -> str:
    """The Markdown table of finished runs, in order of recipe and seed.

    Raises:
        ValueError: A run lacks one of the three players.
    """
    rows = sorted((_row(summary) for summary in summaries), key=lambda row: row[:2])
    lines = [COLUMNS, ("---",) * len(COLUMNS), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace(" --- ", "---")


def won(stage: Mapping[str, Any]) -> str:
    """The share of games won, with the 95 % interval of Wilson (1927): ``87 % (70–95)``."""
    games, wins = stage["games"], stage["wins"]
    low, high = binomtest(wins, games).proportion_ci(method="wilson")
    return f"{wins / games:.0%} ({100 * low:.0f}–{100 * high:.0f})".replace("%", " %")


def _row(summary: Mapping[str, Any]) -> tuple[str, ...]:
    asked, stages = summary["asked"], {stage["name"]: stage for stage in summary["stages"]}
    missing = {"random", "base", "grpo"} - stages.keys()
    if missing:
        run = f"{asked['name']} with seed {asked['seed']}"
        raise ValueError(
            f"The run of {run} has no {', '.join(sorted(missing))}: "
            'finish it, with evaluation.players = ["random"].'
        )
    shares = [won(stages[name]) for name in ("random", "base", "grpo")]
    games = str(stages["grpo"]["games"])
    minutes = f"{summary['wall_time_s'] / 60:.0f}"
    return (f"`{asked['name']}`", str(asked["seed"]), games, *shares, minutes)


def main() -> None:
    """Print the table of the files that are given."""
    parser = argparse.ArgumentParser(description="Print the table of results.")
    parser.add_argument("summaries", nargs="+", type=Path, metavar="SUMMARY.JSON")
    files = parser.parse_args().summaries
    try:
        print(table(json.loads(file.read_text(encoding="utf-8")) for file in files))
    except (OSError, ValueError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
