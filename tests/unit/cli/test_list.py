from importlib.metadata import EntryPoint, EntryPoints

from corral.recipes.catalogue import packaged_recipes
from corral.worlds import WORLDS
from corral.worlds import entry_points as added


def test_list_names_every_world_and_recipe_with_a_sentence(corral):
    (listed,) = corral("list", "--json").objects()
    assert set(listed["worlds"]) == set(WORLDS)
    assert set(listed["recipes"]) == set(packaged_recipes())
    assert all(text.endswith(".") for text in [*listed["worlds"].values()])
    assert all(listed["recipes"].values())
    assert listed["policies"]["wordle"] == ["careless", "random", "solver"]
    assert set(listed["families"]) >= {"gymnasium", "mcp", "openspiel"}
    assert all(text.endswith(".") for text in listed["families"].values())


def test_list_names_worlds_of_packages_that_cannot_be_played(corral, monkeypatch):
    point = EntryPoint("crooked", "no_such_package:Maze", "corral.worlds")
    monkeypatch.setattr(added, "entry_points", lambda **_: EntryPoints([point]))
    (listed,) = corral("list", "--json").objects()
    assert "no_such_package" in listed["failures"]["crooked"]
    assert set(listed["worlds"]) == set(WORLDS)
    ran = corral("list")
    assert ran.code == 0
    assert "The world 'crooked'" in ran.err


def test_list_for_people_leaves_standard_output_clean(corral):
    ran = corral("list")
    assert (ran.code, ran.out) == (0, "")
    assert all(name in ran.err for name in [*WORLDS, *packaged_recipes()])
