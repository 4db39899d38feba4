"""Recipes of worlds in virtual environments of their own run, shortened, where those are."""

from pathlib import Path

import pytest

from support.examples import skip_without
from support.short_recipes import HOSTED, RECIPES, check_that_it_runs

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:torch.*"),
    pytest.mark.timeout(600),
]


def test_there_are_such_recipes():
    assert HOSTED == ["browser", "driving"]


# A minute of pages; what is special to the browser is in its example too.
LONG = pytest.param("browser", marks=pytest.mark.stress)


@pytest.mark.parametrize("name", [LONG, "driving"])
def test_a_recipe_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    skip_without(RECIPES[name]["environment"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("corral.recipes.scratch.SAMPLE_GAMES", 8)  # a page takes most of a second
    check_that_it_runs(name)
