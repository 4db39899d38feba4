"""Where several games are played, an evaluation counts each on its own."""

import tomllib

from corral.evaluation import GameResult, summarise
from corral.recipes.catalogue import packaged_recipes
from corral.recipes.evaluating import evaluate_scripted
from corral.recipes.recipe import Recipe
from corral.worlds import find_world


def result(name: str | None, *, is_won: bool) -> GameResult:
    return GameResult(
        is_won=is_won, reward=0.5, is_fault=False, has_valid_call=True, metrics={}, name=name
    )


def test_games_and_wins_of_each_game_stand_beside_those_of_all():
    games = [result("catch", is_won=True), result("wordle", is_won=False)]
    row = summarise([*games, result("catch", is_won=False)], 1.0).as_row()
    assert (row["games"], row["wins"]) == (3, 1)
    assert {name: value for name, value in row.items() if "/" in name} == {
        "games/catch": 2,
        "wins/catch": 1,
        "games/wordle": 1,
        "wins/wordle": 0,
    }


def test_one_game_has_only_the_numbers_of_all():
    row = summarise([result(None, is_won=True)], 1.0).as_row()
    assert not [name for name in row if "/" in name]


def test_a_world_of_several_games_says_which_is_played():
    recipe = Recipe.model_validate(
        {**tomllib.loads(packaged_recipes()["multi-env"]), "evaluation": {"games": 4}}
    )
    row = evaluate_scripted("solver", find_world("multi_env"), recipe).as_row()
    assert {name: row[name] for name in row if "/" in name} == {
        "games/catch": 2,
        "wins/catch": 2,
        "games/wordle": 2,
        "wins/wordle": 2,
    }
