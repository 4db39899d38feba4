"""The base install has no torch: what it promises must work without, and without asking for it."""

import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import corral
from corral import errors

ROOT = Path(__file__).resolve().parents[2]

BASE_INSTALL = """
import json
import logging
import sys
from importlib import import_module

HEAVY = {"torch", "transformers", "numpy", "accelerate", "peft", "safetensors", "matplotlib"}
asked = []


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HEAVY:
            asked.append(name)
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
root = logging.getLogger()
handlers, level = list(root.handlers), root.level
for name in sys.argv[1:]:
    import_module(name)

from typer.testing import CliRunner
from corral.cli.main import app

runs = {}
for line in ("list", "list --json", "play wordle --policy solver --json", "--version"):
    result = CliRunner().invoke(app, line.split())
    runs[line] = [result.exit_code, result.stdout]
quietly_asked = list(asked)
import corral

try:
    corral.GRPOTrainer
except corral.MissingExtraError as error:
    refusal = str(error)
print(json.dumps({
    "runs": runs,
    "asked": quietly_asked,
    "loaded": sorted(HEAVY & set(sys.modules)),
    "is_logging_left_alone": (root.handlers, root.level) == (handlers, level),
    "refusal": refusal,
}))
"""

LIGHT_PACKAGES = (
    "corral",
    "corral.records",
    "corral.errors",
    "corral.config",
    "corral.env",
    "corral.worlds",
    "corral.chat",
    "corral.rewards",
    "corral.rollout",
    "corral.engines.scripted",
    "corral.track",
    "corral.hosting",
    "corral.cli.main",
)


@pytest.fixture(scope="module")
def base_install() -> dict:
    """What a process saw in which every heavy package is missing."""
    done = subprocess.run(
        [sys.executable, "-c", BASE_INSTALL, *LIGHT_PACKAGES],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nothing_heavy_is_imported_or_even_looked_for(base_install: dict):
    assert base_install["asked"] == []
    assert base_install["loaded"] == []


def test_list_and_play_work_in_the_base_install(base_install: dict):
    runs = base_install["runs"]
    assert {line: code for line, (code, _) in runs.items()} == dict.fromkeys(runs, 0)
    assert json.loads(runs["play wordle --policy solver --json"][1])["world"] == "wordle"
    assert runs["--version"][1] == f"corral {corral.__version__}\n"


@pytest.mark.report("P187")
def test_importing_the_library_leaves_logging_alone(base_install: dict):
    assert base_install["is_logging_left_alone"]


def test_a_trainer_without_torch_says_what_to_install(base_install: dict):
    refusal = base_install["refusal"]
    assert re.match(r"corral\.GRPOTrainer needs '(torch|accelerate)', which is not", refusal)
    assert "pip install 'corral[train]'" in refusal


def test_the_public_names_are_the_documented_ones():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("## Public names")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([A-Za-z]+)`", section)) == set(corral.__all__)
    assert sorted(corral.__all__) == list(corral.__all__)


def test_every_public_name_leads_somewhere_and_no_other_does():
    assert all(name in dir(corral) for name in corral.__all__)
    with pytest.raises(AttributeError, match="no attribute 'GRPOTrainre'"):
        _ = corral.GRPOTrainre


@pytest.mark.parametrize("name", [name for name in corral.__all__ if hasattr(errors, name)])
def test_an_error_survives_pickling(name: str):
    kind = getattr(corral, name)
    copy = pickle.loads(pickle.dumps(kind("what went wrong")))
    assert type(copy) is kind
    assert str(copy) == "what went wrong"


@pytest.mark.parametrize(
    ("name", "standard"),
    [("UsageError", ValueError), ("TemplateError", ValueError), ("MissingExtraError", ImportError)],
)
def test_an_error_is_also_the_standard_one_it_replaces(name: str, standard: type):
    assert issubclass(getattr(corral, name), standard)
