"""Every packaged recipe that makes its own model runs, shortened, from first to last stage."""

from pathlib import Path

import pytest

from support.short_recipes import HERE, check_that_it_runs

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:torch.*"),
    pytest.mark.timeout(480),
]


@pytest.mark.parametrize("name", HERE)
def test_a_recipe_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    check_that_it_runs(name)
