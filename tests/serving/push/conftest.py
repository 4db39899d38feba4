"""A new environment in a folder, ready to be pushed."""

from pathlib import Path

import pytest

from corral.serve.scaffold import scaffold


@pytest.fixture
def environment_folder(tmp_path: Path) -> Path:
    return scaffold("demo", parent=tmp_path).folder
