"""Questions of Reasoning Gym, asked and scored by the real package."""

import json
import subprocess
from typing import Any

import pytest

from support.doors import games

TASKS = ("leg_counting", "chain_sum", "spell_backward", "knights_knaves", "sudoku")
ODDITIES: list[tuple[str, int, list[Any]]] = [
    ("reasoning_gym:chain_sum(min_terms=2, max_terms=2, min_digits=1, max_digits=1)", 1, []),
    ("reasoning_gym:leg_countin", 1, []),
    ("reasoning_gym:chain_sum(legs=3)", 1, []),
]
ENTRIES = """
import json, sys, reasoning_gym
made = [reasoning_gym.create_dataset(name, size=1, seed=7)[0] for name in sys.argv[1:]]
print(json.dumps([{"question": one["question"], "answer": one["answer"]} for one in made]))
"""

pytestmark = pytest.mark.timeout(900)


def answer(text: str) -> list[Any]:
    return [["answer", {"text": text}]]


@pytest.fixture(scope="module")
def entries(doors_python: str) -> dict[str, dict[str, str]]:
    """What the package itself says for seed 7."""
    command = [doors_python, "-c", ENTRIES, *TASKS]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return dict(zip(TASKS, json.loads(ran.stdout), strict=True))


@pytest.fixture(scope="module")
def played(doors_python: str, entries: Any) -> dict[str, list[dict[str, Any]]]:
    """Of each task the right answer, none, a wrong one, and another seed; then the oddities."""
    jobs = [
        (f"reasoning_gym:{name}", seed, calls)
        for name in TASKS
        for seed, calls in (
            (7, answer(entries[name]["answer"])),
            (7, []),
            (7, answer("no idea")),
            (8, None),
        )
    ]
    came = games(doors_python, *jobs, *ODDITIES)
    played = {name: came[4 * place : 4 * place + 4] for place, name in enumerate(TASKS)}
    return {**played, "oddities": came[len(jobs) :]}


@pytest.mark.parametrize("name", TASKS)
def test_a_question_is_the_seeds_and_its_answer_is_scored(name: str, played: Any, entries: Any):
    right, silent, wrong, other = played[name]
    assert right["observation"] == silent["observation"] == entries[name]["question"]
    assert (right["won"], right["reward"], right["texts"]) == (True, 1.0, ["Right."])
    assert right["outcome"] == "stopped_by_environment"
    assert (silent["won"], silent["reward"]) == (False, 0.0)
    assert not wrong["won"]
    assert wrong["reward"] < 0.1
    assert other["observation"] != right["observation"]
    assert other["error"] is None


def test_settings_count_and_what_is_none_is_told(played: Any):
    short, unknown, bad = played["oddities"]
    assert short["observation"].count("+") + short["observation"].count("-") == 1
    assert "Did you mean leg_counting" in unknown["refused"]
    assert "legs" in bad["refused"]
    wrong = played["chain_sum"][2]
    assert wrong["texts"][0].startswith("The answer scores")
