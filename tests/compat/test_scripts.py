"""Scripts written for TRL play the same with Corral, once their import is changed.

Both libraries run each script of ``scripts/`` with a scripted model (see ``policies.py``). Compared
are, episode by episode and in order: the prompts as messages and as ids, the messages of the
completions, their ids and loss masks, all rewards (None included) and the advantages.
"""

import json
import math
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from support.launch import run_module
from support.once import made_once

SCRIPTS = Path(__file__).parent / "scripts"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.py"))
EXACT = ("prompt", "prompt_ids", "completion", "completion_ids", "mask")

Row = dict[str, Any]

pytestmark = [
    pytest.mark.timeout(500),
    pytest.mark.skipif(not all(map(find_spec, ("trl", "datasets"))), reason="TRL is not installed"),
]


@pytest.fixture
def played(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, dict[str, Any]]:
    """By script and library: its episodes."""

    def run(out: Path) -> None:
        run_module("support.compat_run", SCRIPTS, out, processes=1, timeout_s=450)

    return json.loads(made_once(tmp_path_factory, worker_id, "compat.json", run).read_text("utf-8"))


@pytest.mark.contract(51)
@pytest.mark.parametrize("name", NAMES)
def test_a_script_plays_the_same_with_both_libraries(
    played: dict[str, dict[str, list[Row]]], name: str
) -> None:
    ours, theirs = played[name]["corral"], played[name]["trl"]
    assert len(ours) == len(theirs) >= 16
    for number, (found, expected) in enumerate(zip(ours, theirs, strict=True)):
        for part in EXACT:
            assert found[part] == expected[part], f"{part} of episode {number}"
        rewards = {name: nan_for_none(value) for name, value in expected["rewards"].items()}
        assert {name: nan_for_none(value) for name, value in found["rewards"].items()} == (
            pytest.approx(rewards, rel=1e-6, nan_ok=True)
        ), number
        assert found["advantage"] == pytest.approx(expected["advantage"], abs=1e-5), number


def nan_for_none(value: float | None) -> float:
    return math.nan if value is None else value


WHAT_SCRIPTS_SHOW: dict[str, Callable[[Row], bool]] = {
    "a reward that is None": lambda row: None in row["rewards"].values(),
    "no reward at all": lambda row: set(row["rewards"].values()) == {None},
    "an advantage": lambda row: abs(row["advantage"]) > 0.1,
    "ids that are not trained": lambda row: 0 in row["mask"],
    "two calls in one turn": lambda row: any(
        len(message.get("tool_calls", ())) == 2 for message in row["completion"]
    ),
    "three rounds of tools": lambda row: sum(m["role"] == "tool" for m in row["completion"]) >= 3,
    "a tool that failed": lambda row: "{'error': 'Game over.'}" in _results(row),
    "a tool that is not there": lambda row: "{'error': 'Tool shout not found.'}" in _results(row),
    "a result that is a dict": lambda row: "{'guesses': 1, 'over': False}" in _results(row),
    "a call that nobody answers": lambda row: bool(row["completion"][-1].get("tool_calls")),
}


@pytest.mark.parametrize("what", WHAT_SCRIPTS_SHOW)
def test_the_scripts_show(played: dict[str, dict[str, list[Row]]], what: str) -> None:
    """Equality says little where nothing happens."""
    rows = [row for libraries in played.values() for row in libraries["corral"]]
    assert any(map(WHAT_SCRIPTS_SHOW[what], rows))


def _results(row: Row) -> list[Any]:
    return [message["content"] for message in row["completion"] if message["role"] == "tool"]
