import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from typer.testing import CliRunner

from corral.cli.main import app


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    def objects(self) -> list[dict[str, Any]]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def corral(monkeypatch, tmp_path) -> Callable[..., Ran]:
    """Runs the command line in this process and in an empty folder."""
    monkeypatch.chdir(tmp_path)
    # Messages are compared as text: no colours, no line breaks by the width of a terminal.
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: str, stdin: str | None = None) -> Ran:
        result = CliRunner().invoke(app, list(arguments), input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(code=result.exit_code, out=result.stdout, err=result.stderr)

    return run
