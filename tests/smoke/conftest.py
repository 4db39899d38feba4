from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from corral.cli.main import app
from support.sums import write_sums
from support.tiny_models import save_tiny_model


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def corral(
    tmp_path: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """Runs the command line in a folder with a model, a game, rewards and data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "tiny").symlink_to(model_folder)
    write_sums(tmp_path)

    def run(*arguments: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, list(arguments), input="")
        assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
        return result

    return run
