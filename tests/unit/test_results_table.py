"""The table of results that ``benchmarks/results_table.py`` makes of summaries."""

import runpy
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "results_table.py"
table = runpy.run_path(str(SCRIPT))["table"]


def summary(name: str, seed: int, **wins: int) -> dict[str, Any]:
    stages = [{"name": stage, "games": 30, "wins": won} for stage, won in wins.items()]
    return {"asked": {"name": name, "seed": seed}, "stages": stages, "wall_time_s": 540.0}


def test_a_run_is_a_row_with_wilson_intervals_in_order_of_recipe_and_seed():
    runs = [
        summary("echo", 1, random=6, base=0, sft=3, grpo=30),
        summary("echo", 0, random=6, base=0, sft=3, grpo=26),
        summary("catch", 0, random=6, base=0, sft=3, grpo=15),
    ]
    # By hand, Wilson's interval of 26 of 30 is 0.703 to 0.947, of 0 of 30 0 to 0.114.
    assert table(runs).splitlines() == [
        "| recipe | seed | games | random play | untrained | trained | minutes |",
        "|---|---|---|---|---|---|---|",
        "| `catch` | 0 | 30 | 20 % (10–37) | 0 % (0–11) | 50 % (33–67) | 9 |",
        "| `echo` | 0 | 30 | 20 % (10–37) | 0 % (0–11) | 87 % (70–95) | 9 |",
        "| `echo` | 1 | 30 | 20 % (10–37) | 0 % (0–11) | 100 % (89–100) | 9 |",
    ]


def test_a_run_without_one_of_the_players_is_refused():
    with pytest.raises(ValueError, match="echo with seed 2 has no grpo, random: finish it"):
        table([summary("echo", 2, base=0)])
