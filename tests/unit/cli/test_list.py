from corral.recipes.catalogue import packaged_recipes
from corral.worlds import WORLDS


def test_list_names_every_world_and_recipe_with_a_sentence(corral):
    (listed,) = corral("list", "--json").objects()
    assert set(listed["worlds"]) == set(WORLDS)
    assert set(listed["recipes"]) == set(packaged_recipes())
    assert all(text.endswith(".") for text in [*listed["worlds"].values()])
    assert all(listed["recipes"].values())
    assert listed["policies"]["wordle"] == ["careless", "random", "solver"]


def test_list_for_people_leaves_standard_output_clean(corral):
    ran = corral("list")
    assert (ran.code, ran.out) == (0, "")
    assert all(name in ran.err for name in [*WORLDS, *packaged_recipes()])
