"""Games of TextArena, played with the real package on Python 3.12."""

from typing import Any

import pytest

from support.doors import games

pytestmark = pytest.mark.timeout(900)


def plays(*moves: Any) -> list[Any]:
    return [["play", {"move": str(move)}] for move in moves]


JOBS = {
    "tic-tac-toe": ("textarena:TicTacToe-v0", 3, None),
    "tic-tac-toe again": ("textarena:TicTacToe-v0", 3, None),
    "second seat": ("textarena:TicTacToe-v0(player=1)", 3, None),
    "taken cell": ("textarena:TicTacToe-v0", 3, plays(4, 4, 4)),
    "number": ("textarena:GuessTheNumber-v0", 3, plays(10, "x", 5, 7, 8, 9)),
    "lake": ("textarena:FrozenLake-v0", 3, plays("up", *3 * ["right"], *3 * ["down"])),
    "wordle": ("textarena:Wordle-v0", 3, plays("crane", "zzzzz", "horse")),
    "mixed up": ("textarena:Countdown-v0", 3, plays("x", "y")),
    "many": ("textarena:PublicGoodsGame-v0", 3, plays(1)),
    "unknown": ("textarena:TicTacTo-v0", 0, []),
    "no seat": ("textarena:TicTacToe-v0(player=2)", 0, []),
    "unfinished": ("textarena:Wordle-v0", 4, plays("crane")),
}
BY_CHANCE = [
    (f"textarena:{name}", seed, None)
    for name in ("TicTacToe-v0", "KuhnPoker-v0")
    for seed in range(6)
]


@pytest.fixture(scope="module")
def all_played(doors_python: str) -> list[dict[str, Any]]:
    return games(doors_python, *JOBS.values(), *BY_CHANCE)


@pytest.fixture(scope="module")
def played(all_played: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return dict(zip(JOBS, all_played, strict=False))


@pytest.mark.parametrize("name", ["tic-tac-toe", "second seat", "number", "lake", "wordle"])
def test_a_game_is_played_to_its_end(name: str, played: Any):
    game = played[name]
    assert game["error"] is None
    assert game["outcome"] == "stopped_by_environment"
    assert f"Game over. Your reward is {game['reward']:g}." in game["texts"][-1]


def test_a_game_for_two_is_played_against_random_moves(played: Any):
    first, again, second = (
        played[one] for one in ("tic-tac-toe", "tic-tac-toe again", "second seat")
    )
    assert again == first
    assert "As Player 0, you will be 'O'" in first["observation"]
    assert "Player 1 placed their symbol (X)" in first["texts"][0]
    assert first["texts"][0].count("Current Board") == 1
    assert "As Player 1, you will be 'X'" in second["observation"]
    assert "Player 0 placed their symbol (O)" in second["observation"]
    assert first["won"] == (first["reward"] == 1.0)


def test_an_invalid_move_is_forgiven_once(played: Any):
    _, forgiven, lost = played["taken cell"]["texts"]
    assert "invalid move. Reason: cell 4 is already occupied" in forgiven
    assert lost.endswith("Game over. Your reward is -1.")
    assert played["taken cell"]["metrics"]["invalid_moves"] == 2.0


def test_games_for_one_are_won(played: Any):
    number, lake = played["number"], played["lake"]
    assert (number["won"], number["reward"], number["metrics"]["invalid_moves"]) == (True, 1.0, 1.0)
    assert number["texts"][0] == "The target number is lower."
    assert (lake["won"], lake["reward"]) == (True, 1.0)
    assert lake["observation"].endswith("[w], [a], [s], [d]")


def test_a_reason_in_place_of_a_reward_is_a_lost_game(played: Any):
    game = played["mixed up"]
    assert (game["errors"], game["reward"]) == ([False, False], -1.0)
    assert "Invalid action format" in game["texts"][-1]


def test_a_game_for_any_number_is_not_played_alone(played: Any):
    assert played["many"]["error"] is None
    assert "Player 1" in played["many"]["texts"][0]


def test_words_are_there_without_a_network(played: Any):
    wordle = played["wordle"]
    assert "X Y X X G" in wordle["texts"][0]
    assert "'zzzzz' is not an English word" in wordle["texts"][1]
    assert (wordle["won"], wordle["reward"], len(wordle["texts"])) == (True, 1.0, 3)
    assert (played["unfinished"]["won"], played["unfinished"]["reward"]) == (False, -1.0)


def test_games_at_the_same_time_do_not_share_their_chance(doors_python: str, all_played: Any):
    assert games(doors_python, *BY_CHANCE, at_once=6) == all_played[len(JOBS) :]


def test_what_cannot_be_played_is_told(played: Any):
    assert "Did you mean TicTacToe-v0" in played["unknown"]["refused"]
    assert "seats 0 to 1" in played["no seat"]["refused"]
