import re
import sys

import pytest

import corral as library
from corral.cli import main as main_module
from corral.cli.main import app

COMMANDS = ["train", "sft", "eval", "play", "serve", "check", "init", "push", "install", "list"]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_each_command_has_an_example(corral, command: str):
    ran = corral(command, "--help")
    assert ran.code == 0
    assert re.search(rf"Example: corral {command}\b", ran.out)
    assert "..." not in corral("--help").out.partition("Commands:")[2], "a summary was cut"


def test_the_help_lists_every_command(corral):
    listed = corral("--help").out.partition("Commands:")[2]
    assert {line.split()[0] for line in listed.strip().splitlines()} == set(COMMANDS)


def test_the_version_is_the_library_s(corral):
    ran = corral("--version")
    assert (ran.code, ran.out) == (0, f"corral {library.__version__}\n")


@pytest.mark.parametrize("arguments", [["plai"], ["play"], ["play", "echo", "--episodes", "0"]])
def test_a_command_line_that_makes_no_sense_ends_with_2_and_says_so(corral, arguments):
    ran = corral(*arguments)
    assert ran.code == 2
    assert "Usage: corral" in ran.err
    assert ran.out == ""


def test_an_interrupted_command_says_so(corral, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("corral.hosting.find_environment", interrupted)
    ran = corral("play", "echo")
    assert ran.code == 130
    assert ran.err == "Error: Interrupted.\n"


def test_main_runs_the_command_of_the_process(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["corral", "--version"])
    with pytest.raises(SystemExit) as left:
        main_module.main()
    assert left.value.code in (0, None)
    assert capsys.readouterr().out.startswith("corral ")
    assert app.info.name == "corral"
