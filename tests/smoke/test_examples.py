"""Each example runs for two steps on the small model that it makes; its README names its flags."""

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

from corral.recipes.catalogue import packaged_recipes
from corral.serve.ports import free_port
from corral.worlds import find_installable, find_world
from support.examples import HOSTED, SCRIPTS, SMALL, run
from support.served_command import serving

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:torch.*"),
    pytest.mark.timeout(240),
]

OPTIONS = {
    "grpo_echo": [[*SMALL, "--batch-size", "2"]],
    "grpo_catch": [[*SMALL, "--accumulation", "1"]],
    "grpo_wordle": [[*SMALL, "--batch-size", "2", "--accumulation", "1"]],
    "grpo_sudoku": [[*SMALL, "--accumulation", "2", "--lora", "--hints", "hard"]],
    "grpo_multi_env": [
        [*SMALL, "--accumulation", "2"],
        [*SMALL, "--accumulation", "2", "--by", "factories"],
    ],
}
RUNS = [(name, options) for name, several in OPTIONS.items() for options in several]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_every_example_is_run():
    assert [script.stem for script in SCRIPTS] == sorted([*OPTIONS, *HOSTED])
    assert all(script.parent.name == script.stem for script in SCRIPTS)


@pytest.mark.parametrize(("name", "options"), RUNS)
def test_an_example_runs(name: str, options: list[str], monkeypatch: pytest.MonkeyPatch):
    steps = run(name, options, monkeypatch)
    assert len(steps) == 2
    assert all(step["reward"] is not None for step in steps)
    assert Path("run/model").is_dir()


def test_an_example_plays_a_served_world(monkeypatch: pytest.MonkeyPatch):
    port = free_port()
    with serving(["corral", "serve", "catch", "--port", str(port)], port) as url:
        steps = run("grpo_catch", [*OPTIONS["grpo_catch"][0], "--url", url], monkeypatch)
    assert len(steps) == 2
    assert "rewards/Catch/mean" in steps[0]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_is_short_and_names_what_it_needs(script: Path):
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    assert text.startswith("# /// script\n# requires-python = ")
    call = re.search(r"    trainer = GRPOTrainer\(.*?\n    \)", text, re.DOTALL)
    assert call is not None
    assert len(call.group().splitlines()) < 15


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_commands_of_its_readme_are_right(script: Path, monkeypatch: pytest.MonkeyPatch):
    page = (script.parent / "README.md").read_text(encoding="utf-8")
    module = runpy.run_path(str(script), run_name="example")
    for link in re.findall(r"\]\(([^)]+)\)", page):
        assert (script.parent / link).exists(), link
    commands = [
        shlex.split(line.partition("  #")[0])
        for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
        for line in block.replace("\\\n", " ").splitlines()
    ]
    assert commands
    for program, first, *rest in commands:
        if program == "python":
            assert first == f"examples/{script.stem}/{script.name}"
            monkeypatch.setattr(sys, "argv", [first, *rest])
            module["arguments"]()
        elif first == "serve":
            find_world(rest[0])
        elif first == "install":
            assert find_installable(rest[0]).needs is not None
        else:
            assert (program, first) == ("corral", "train")
            assert rest[0] in packaged_recipes()
