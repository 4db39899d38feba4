"""The browser's players, rows and text; the browser itself is in tests/worlds."""

import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from corral.hosting import find_environment
from corral.worlds.browser import (
    ONE_CLICK,
    TASKS,
    WORLD,
    evaluation_tasks,
    of_tasks,
    tasks,
)
from corral.worlds.browser.chromium import chromium_problem, find_chromium
from corral.worlds.browser.env import cut
from corral.worlds.browser.solver import read, solver

LOGIN = """Goal: Enter the username "juan" and the password "J'c" into the text fields.
Steps left: 9

RootWebArea 'Login User Task', focused
\t[15] LabelText ''
\t\tStaticText 'Username'
\t[16] textbox '' value='juan', clickable
\t[19] textbox "it's" value="{password}", clickable, focused
\t[20] button 'Login', clickable
\t[21] checkbox 'Stay', clickable, checked='true'"""


def play(text: str, *, done: bool = False):
    return solver(SimpleNamespace(done=done), text, random.Random(0))


def test_a_page_is_read_as_a_goal_and_numbered_elements():
    seen = read(LOGIN.format(password="x"))
    assert seen.quoted == ["juan", "J'c"]
    assert [one.bid for one in seen.elements] == ["15", "16", "19", "20", "21"]
    assert seen.named("IT'S").value == "x"
    assert [one.is_checked for one in seen.elements] == [False] * 4 + [True]


def test_the_solver_fills_what_is_not_filled_yet_and_then_presses():
    action = play(LOGIN.format(password=""))
    assert action is not None
    assert (action.tool, action.arguments) == ("fill", {"bid": "19", "text": "J'c"})
    action = play(LOGIN.format(password="J'c"))
    assert action is not None
    assert (action.tool, action.arguments) == ("click", {"bid": "20"})


@pytest.mark.parametrize(
    ("goal", "bid"),
    [
        ("Click the button.", "1"),
        ("Click button TWO.", "2"),
        ('Click on the "Two" button.', "2"),
        ('Close the dialog box by clicking the "x".', "3"),
        ('Click the button in the dialog box labeled "x".', "3"),
        ('Click the button in the dialog box labeled "two".', "2"),
        ("Focus into the textbox.", "4"),
        ("Focus into the 2nd input textbox.", "5"),
        ('Click on the link "amet".', "6"),
        ("Click on Tab #3.", "7"),
        ("Select amet2 and click Submit.", "8"),
    ],
)
def test_the_solver_knows_what_each_goal_means(goal: str, bid: str):
    page = "\n".join(
        [
            "[1] button 'One'",
            "[2] button 'two'",
            "[3] button 'Close'",
            "[4] textbox ''",
            "[5] textbox ''",
            "[6] generic 'amet'",
            "[7] tab 'Tab #3'",
            "[8] radio 'amet2', clickable, checked='false'",
        ]
    )
    action = play(f"Goal: {goal}\n\n{page}")
    assert action is not None
    assert (action.tool, action.arguments) == ("click", {"bid": bid})


def test_the_solver_waits_where_it_knows_nothing_and_stops_at_the_end():
    action = play("Goal: Paint it black.")
    assert action is not None
    assert action.tool == "noop"
    assert play("The task is solved.", done=True) is None


def test_a_long_page_is_cut_between_lines():
    tree = "\n".join(f"[{n}] button 'x'" for n in range(100))
    shown = cut(tree, 200)
    assert len(shown) <= 200 + len("\n(99 more lines)")
    *lines, last = shown.split("\n")
    assert last == f"({100 - len(lines)} more lines)"
    assert lines == tree.split("\n")[: len(lines)]
    assert cut(tree, len(tree)) == tree


def test_rows_name_every_task_and_evaluation_has_pages_of_its_own():
    rows = tasks(3, 4 * len(TASKS))
    assert {row["task"] for row in rows} == set(TASKS)
    held_out = evaluation_tasks(len(TASKS))
    assert [row["task"] for row in held_out] == list(TASKS)
    assert max(row["seed"] for row in rows) < min(row["seed"] for row in held_out)
    some = of_tasks("email-inbox", "tic-tac-toe")
    assert {row["task"] for row in some.tasks(0, 6)} == {"email-inbox", "tic-tac-toe"}
    assert some.evaluation_tasks(2)[1]["task"] == "tic-tac-toe"
    assert some.needs is WORLD.needs
    two = {"click-dialog-2", "focus-text-2"}
    assert {row["task"] for row in ONE_CLICK.tasks(0, 2)} == two
    assert {row["task"] for row in ONE_CLICK.evaluation_tasks(2)} == two


def test_a_missing_chromium_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CORRAL_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match=r"browser cannot run here.*CORRAL_CHROMIUM"):
        find_environment("browser")
    program = tmp_path / "chromium"
    program.touch(mode=0o755)
    assert find_chromium() == str(program)
    assert chromium_problem() is None
    monkeypatch.setenv("CORRAL_CHROMIUM", "/nowhere/chrome")
    assert chromium_problem() == "CORRAL_CHROMIUM='/nowhere/chrome' is no program that can be run."
