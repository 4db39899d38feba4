"""Every command and code block of the pages is run, or checked as far as a test can afford."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from corral.cli.main import app
from corral.evaluation import Evaluation
from corral.serve.ports import free_port
from corral.serve.scaffold import scaffold
from corral.worlds import find_installable
from support.docs_blocks import ROOT, Block, blocks, inline_commands
from support.served_command import environment, serving
from support.tiny_models import save_tiny_model
from support.tiny_vlms import tiny_vlm

pytestmark = pytest.mark.timeout(300)

NOT_RUN = {
    ("docs/architecture.md", "text"): "a diagram of the flow",
    ("docs/environments.md", "text"): "a part of another package's pyproject.toml",
}
"""Languages of a page that nothing can run, each with the reason."""

SHORTER = {"max_steps=50": "max_steps=2"}
"""What is replaced before a Python block runs: fifty steps take minutes, two show that it works."""

SHORTER_OPTIONS = {"eval": ["--games", "2"]}
"""Appended to commands; the last one counts."""

SERVED_URL = "http://127.0.0.1:8000"
"""Where the pages say that guess_number is served; replaced by where it is."""

VISION_MODEL = "path-to-a-vision-model"
"""What the pages call a folder with a model that reads images."""

BLOCKS = blocks()
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def of(*languages: str) -> list[Block]:
    return [block for block in BLOCKS if block.language in languages and not block.needs_packages()]


def of_rows() -> list[Block]:
    """The rows of summaries; the other JSON of the pages is frames, see test_frames."""
    return [block for block in of("json") if "type" not in json.loads(block.text)]


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    return save_tiny_model(folder, num_hidden_layers=1, max_position_embeddings=640)


@pytest.fixture(scope="module")
def vision_model(tmp_path_factory) -> Path:
    """A folder with a model that reads images, and its processor."""
    folder = tmp_path_factory.mktemp("vision-model")
    for part in tiny_vlm("llava"):
        part.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def served_url():
    """Where guess_number is served, as the pages tell to start it."""
    port = free_port()
    with serving(["corral", "serve", "guess_number", "--port", str(port)], port) as url:
        yield url


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch, tiny_model: Path) -> Path:
    """A folder with what the pages take for granted: a model, a run, and the pages' recipes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "path-or-hub-id").symlink_to(tiny_model)
    for block in of("toml"):
        name = tomllib.loads(block.text)["name"]
        (tmp_path / f"{name}.toml").write_text(block.text, encoding="utf-8")
    for block in of("yaml"):
        name = yaml.safe_load(block.text)["name"]
        (tmp_path / f"{name}.yaml").write_text(block.text, encoding="utf-8")
    for block in of("jsonl"):
        (tmp_path / "talks.jsonl").write_text(block.text, encoding="utf-8")
        (tmp_path / "held-out.jsonl").write_text(block.text, encoding="utf-8")
    write_files_of_recipes(tmp_path, tiny_model)
    run = tmp_path / "runs" / "wordle-tiny"
    (run / "models").mkdir(parents=True)
    (run / "models" / "base").symlink_to(tiny_model)
    settings = corral("train", "wordle-tiny", "--dry-run").stdout
    (run / "config.toml").write_text(settings, encoding="utf-8")
    return tmp_path


def write_files_of_recipes(folder: Path, model: Path) -> None:
    """What the recipes of docs/recipes.md name beside the page's blocks."""
    for block in of("python"):
        name = block.text.partition("\n")[0].removeprefix("# ")
        if name in ("game.py", "rewards.py"):
            (folder / name).write_text(block.text, encoding="utf-8")
    with (folder / "rewards.py").open("a", encoding="utf-8") as rewards:
        rewards.write("\ndef scored_where_it_applies(environments, **kwargs):\n    return [None]\n")
    shutil.copy(model / "chat_template.jinja", folder / "chat.jinja")
    goal = {"prompt": "Reach 7.", "start": 3, "goal": 7}
    for name, more in {"goals": {}, "held-out-goals": {}, "both": {"environment": "sums"}}.items():
        (folder / f"{name}.jsonl").write_text(json.dumps(goal | more), encoding="utf-8")


def corral(*arguments: str):
    result = CliRunner().invoke(app, arguments, input="")
    assert result.exit_code == 0, f"corral {shlex.join(arguments)}\n{result.output}"
    return result


def test_every_block_is_run_or_has_a_reason_not_to_be():
    handled = {"python", "sh", "toml", "yaml", "json", "jsonl"}
    left = {(block.page, block.language) for block in BLOCKS if block.language not in handled}
    assert left == set(NOT_RUN)
    assert {block.page for block in BLOCKS} >= {"README.md", "CONTRIBUTING.md"}


def test_every_replacement_is_needed():
    source = "".join(block.text for block in of("python"))
    assert all(text in source for text in SHORTER)


@pytest.mark.report("P193")
@pytest.mark.parametrize("block", of("python"), ids=str)
def test_a_python_block_runs(block: Block, workplace: Path, request: pytest.FixtureRequest):
    source = block.text
    if SERVED_URL in source:
        source = source.replace(SERVED_URL, request.getfixturevalue("served_url"))
    if VISION_MODEL in source:
        (workplace / VISION_MODEL).symlink_to(request.getfixturevalue("vision_model"))
    for text, shorter in SHORTER.items():
        source = source.replace(text, shorter)
    exec(compile(source, str(block), "exec"), {"__name__": "example"})


@pytest.mark.report("P193")
@pytest.mark.parametrize("block", of("sh"), ids=str)
def test_a_shell_block_works(block: Block, workplace: Path, monkeypatch):
    for command in block.commands():
        words = shlex.split(command)
        while "=" in words[0]:  # a variable for this command
            name, _, value = words.pop(0).partition("=")
            monkeypatch.setenv(name, value)
        program, *arguments = words
        CHECKS[program](arguments)


@pytest.mark.parametrize("block", of("toml"), ids=str)
def test_a_recipe_is_valid_and_every_setting_in_it_counts(block: Block, workplace: Path):
    recipe = tomllib.loads(block.text)
    resolved = tomllib.loads(corral("train", f"{recipe['name']}.toml", "--dry-run").stdout)
    assert is_within(recipe, resolved)


@pytest.mark.parametrize("block", of("yaml"), ids=str)
def test_a_recipe_in_yaml_is_valid_and_every_setting_in_it_counts(block: Block, workplace: Path):
    recipe = yaml.safe_load(block.text)
    resolved = tomllib.loads(corral("train", f"{recipe['name']}.yaml", "--dry-run").stdout)
    assert is_within(recipe, resolved)


@pytest.mark.parametrize("block", of_rows(), ids=str)
def test_a_row_of_the_summary_has_the_columns_shown(block: Block):
    row = json.loads(block.text)
    columns = {"name", *(field.name for field in fields(Evaluation))}
    assert set(row) == columns - {"by_game"}  # which the text tells of


@pytest.mark.parametrize(("page", "command"), inline_commands())
def test_a_command_in_the_text_exists(page: str, command: str):
    program, name, *_ = shlex.split(command.replace("…", ""))
    if program == "make":
        check_target([name])
    else:
        corral(name, "--help")


def run_corral(arguments: list[str]) -> None:
    name, *rest = arguments
    if name == "serve":
        port = free_port()
        with serving(["corral", "serve", *rest, "--port", str(port)], port):
            pass
    elif name == "install" and "--list" not in rest:
        assert find_installable(rest[0]).needs is not None  # installing takes a network and minutes
    elif name == "push":
        assert "--dry-run" in rest  # nothing of a test is ever sent
        os.chdir(scaffold("demo", parent=Path.cwd()).folder)
        corral(name, *rest)
        os.chdir(Path.cwd().parent)
        shutil.rmtree("demo")
    elif name == "train" and any(SERVED_URL in argument for argument in rest):
        # What it plays is served elsewhere, so its settings are resolved and no more.
        assert tomllib.loads(CliRunner().invoke(app, [*arguments, "--dry-run"]).stdout)
    elif name == "train":
        corral(name, *rest, "--dry-run")  # a training takes minutes; its settings are checked
    else:
        corral(name, *rest, *SHORTER_OPTIONS.get(name, []))


def check_target(arguments: list[str]) -> None:
    """Making takes minutes (and this test is part of ``make test``), so its parts are looked at."""
    target, *variables = arguments
    assert re.search(rf"^{re.escape(target)}:", MAKEFILE, re.MULTILINE), target
    assert all(re.search(rf"^{v.partition('=')[0]} \?=", MAKEFILE, re.MULTILINE) for v in variables)


def check_install(arguments: list[str]) -> None:
    """Installing needs a network and minutes, so the names of the extras are checked."""
    assert arguments[0] == "install"
    extras = re.findall(r"\[([a-z,]+)\]", arguments[1])
    known = PROJECT["project"]["optional-dependencies"]
    assert all(name in known for extra in extras for name in extra.split(","))


def check_pytest(arguments: list[str]) -> None:
    """Tests do not start tests; the folder must exist."""
    assert arguments[:2] == ["-m", "pytest"]
    assert (ROOT / arguments[2]).is_dir()


def check_torchrun(arguments: list[str]) -> None:
    """Two processes take a minute and have tests of their own; the options are read."""
    from torch.distributed.run import get_args_parser

    assert get_args_parser().parse_args(arguments).nproc_per_node == "2"


def run_python(arguments: list[str]) -> None:
    """Whatever it is, in a process of its own."""
    subprocess.run([sys.executable, *arguments], env=environment(), check=True, timeout=120)


CHECKS = {
    "torchrun": check_torchrun,
    "cd": lambda arguments: os.chdir(arguments[0]),
    "corral": run_corral,
    "python": run_python,
    "make": check_target,
    "pip": check_install,
    ".venv/bin/corral": run_corral,
    ".venv/bin/python": check_pytest,
}


def is_within(part, whole) -> bool:
    if isinstance(part, str) and isinstance(whole, dict):  # a path alone stands for a section
        return whole["path"] == part
    if isinstance(part, dict):
        return all(name in whole and is_within(part[name], whole[name]) for name in part)
    return part == whole
