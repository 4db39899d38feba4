"""The example scripts, and how a test runs one."""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from corral.errors import UsageError
from corral.hosting import find_environment

FOLDER = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(FOLDER.glob("*/*.py"))
SMALL = ["--max-steps", "2", "--num-generations", "2", "--max-tokens", "24"]
HOSTED = {"grpo_browsergym": "browser", "grpo_carla": "driving"}
"""Those whose world has to be installed, with its name; tests/worlds runs them."""


def run(name: str, options: list[str], monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Run an example in the current folder; returns the numbers of each step."""
    monkeypatch.setattr(sys, "argv", [name, "--output", "run", *options])
    runpy.run_path(str(FOLDER / name / f"{name}.py"), run_name="__main__")
    lines = Path("run/metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["metrics"] for line in lines]


def skip_without(spec: str) -> None:
    """Skip a test whose world is not installed, or lacks what it needs of the system."""
    try:
        find_environment(spec)
    except UsageError as missing:
        pytest.skip(str(missing))
