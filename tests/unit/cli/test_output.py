import json

import pytest
from rich.console import Console

from corral.cli import output
from corral.cli.training import before_and_after
from corral.track import StageResult


def shown(thing, width: int = 80) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(thing)
    return capture.get()


def stage(name: str, **changes) -> StageResult:
    metrics = {
        "games": 30,
        "wins": 12,
        "mean_reward": 0.625,
        "valid_call_share": 1.0,
        "faults": 0,
        "guesses_per_win": 3.25,
        "invalid_guesses": 41,
    }
    return StageResult(name=name, metrics=metrics | changes, seconds=65.0)


def test_the_table_before_and_after_fits_a_terminal_of_80_columns():
    text = shown(before_and_after([stage("base", wins=0, guesses_per_win=None), stage("grpo")]))
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.split()}
    assert rows["base"] == ["30", "0", "–", "41", "1.00", "0.62", "1:05"]
    assert rows["grpo"] == ["30", "12", "3.25", "41", "1.00", "0.62", "1:05"]
    head = " ".join(text.partition("─")[0].split())
    for word in ("stage", "games", "wins", "guesses", "per win", "invalid", "mean", "time"):
        assert word in head


def test_the_table_leaves_out_what_the_world_does_not_count_and_shows_faults():
    unknown = {"guesses_per_win": None, "invalid_guesses": None}
    text = shown(before_and_after([stage("base", **unknown), stage("sft", faults=2, **unknown)]))
    assert "invalid" not in text
    assert "faults" in text
    assert "faults" not in shown(before_and_after([stage("base")]))


@pytest.mark.parametrize("text", ["[bold]x[/]", "a \\[b", "\\", "[/nothing]", "[", "x\x1b[2Jy\x07"])
def test_text_is_shown_as_it_is_and_steers_no_terminal(capsys, text: str):
    output.say(text)
    assert (
        capsys.readouterr().err == text.replace("\x1b", "\ufffd").replace("\x07", "\ufffd") + "\n"
    )
    cell = shown(output.table("", ["x"], [[text]]))
    assert "\x1b" not in cell


def test_data_is_one_line_of_json_on_standard_output(capsys):
    output.emit({"text": "größe\n", "none": None})
    printed = capsys.readouterr()
    assert printed.out.count("\n") == 1
    assert json.loads(printed.out) == {"text": "größe\n", "none": None}
    assert printed.err == ""


def test_a_failure_is_one_message_and_a_code(capsys):
    with pytest.raises(SystemExit) as left:
        output.fail("x=[1] is wrong: " + "long " * 40, code=7)
    assert left.value.code == 7
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("Error: x=[1] is wrong: long")
    assert printed.err.count("\n") == 1
