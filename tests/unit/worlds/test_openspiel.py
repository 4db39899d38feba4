"""Games of OpenSpiel as worlds, and the native catch beside the real one."""

import random
import re

import pytest

from corral.errors import MissingExtraError, UsageError
from corral.worlds import find_world, openspiel
from corral.worlds.catch import Catch
from corral.worlds.openspiel import OpenSpielGame
from corral.worlds.play import play_episodes, play_scripted

pyspiel = pytest.importorskip("pyspiel", reason="needs corral[openspiel]")


@pytest.mark.parametrize("seed", range(20))
def test_the_native_catch_is_openspiels(seed: int):
    own, rng = Catch(), random.Random(seed)
    own.reset(seed=seed)
    theirs = pyspiel.load_game("catch").new_initial_state()
    theirs.apply_action(own.ball[1])
    for _ in range(9):
        assert not theirs.is_terminal()
        action = rng.randrange(3)
        theirs.apply_action(action)
        shown = own.stay() if action == 1 else own.move("left" if action == 0 else "right")
        assert shown.split("\nCaught")[0].split("\nMissed")[0] == str(theirs).strip()
    assert theirs.is_terminal()
    assert own.done
    assert own.get_reward() == max(theirs.returns()[0], 0.0)


def test_a_seed_fixes_chance_and_opponents():
    world = find_world("openspiel:backgammon")

    def texts(seed: int) -> list[str]:
        played = play_scripted(world, world.policy("random"), {"prompt": "", "seed": seed}, 5)
        return [played.observation, *(turn.content for turn in played.turns[:10])]

    assert texts(3) == texts(3)
    assert texts(3) != texts(4)


def test_a_board_game_tells_what_others_played_and_what_may_be_played():
    env = OpenSpielGame("tic_tac_toe", opponent="first")
    opening = env.reset(seed=0)
    assert opening.startswith("...\n...\n...\nYou are player 0. Legal actions: x(0,0), x(0,1)")
    assert env.play("x(1,1)").startswith("Player 1 played o(0,0).\no..\n.x.\n...\n")
    assert "x(1,1)" not in env.legal_actions


@pytest.mark.parametrize(("opponent", "reply"), [("first", "o(0,0)"), ("last", "o(2,2)")])
def test_opponents_take_the_first_or_the_last_action(opponent: str, reply: str):
    env = OpenSpielGame("tic_tac_toe", opponent=opponent)
    env.reset(seed=0)
    assert f"Player 1 played {reply}." in env.play("x(1,1)")


def test_random_opponents_differ_between_seeds():
    replies = set()
    for seed in range(20):
        env = OpenSpielGame("tic_tac_toe")
        env.reset(seed=seed)
        replies.add(env.play("x(1,1)").split("\n")[0])
    assert len(replies) > 3


def test_the_model_may_sit_elsewhere():
    env = OpenSpielGame("tic_tac_toe", player=1, opponent="first")
    assert env.reset(seed=0).startswith("Player 0 played x(0,0).\nx..")
    assert "o(0,1)" in env.legal_actions


def test_an_illegal_action_is_refused_with_what_is_legal_and_counted():
    env = OpenSpielGame("tic_tac_toe", opponent="first")
    env.reset(seed=0)
    env.play("x(1,1)")
    answer = env.play("x(1,1)")
    assert answer.startswith("'x(1,1)' is no legal action. You are player 0. Legal actions: x(0,1)")
    assert (env.plies, env.metrics["illegal_actions"]) == (2, 1.0)


def test_case_and_spaces_do_not_matter_where_they_tell_nothing_apart():
    env = OpenSpielGame("kuhn_poker", opponent="first")
    env.reset(seed=0)
    env.play("  bET ")
    assert env.illegal_actions == 0
    # A pawn and a bishop may take on c3 with names that differ in their case alone.
    names = {"bxc3": 1, "Bxc3": 2}
    from corral.worlds.openspiel.env import _found

    assert [_found(name, names) for name in ("bxc3", "Bxc3", "BXC3")] == [1, 2, None]


def test_a_finished_game_is_scored_by_its_share_and_over():
    env = OpenSpielGame("tic_tac_toe", opponent="first")
    env.reset(seed=0)
    assert env.get_reward() == 0.0
    for move in ("x(1,1)", "x(0,2)", "x(2,0)"):
        answer = env.play(move)
    assert answer.endswith("You won. Game over.")
    assert (env.won, env.done, env.get_reward()) == (True, True, 1.0)
    with pytest.raises(ValueError, match=r"^Game over\.$"):
        env.play("x(0,1)")


def test_a_game_that_goes_on_too_long_is_broken_off():
    env, rng = OpenSpielGame("chess", max_plies=11), random.Random(0)
    env.reset(seed=0)
    while not env.done:
        answer = env.play(rng.choice(list(env.legal_actions)))
    assert answer.endswith("The game is broken off. Game over.")
    assert (env.plies, env.won, env.get_reward()) == (11, False, 0.0)


def test_cards_of_others_are_not_shown():
    for seed in range(30):
        env = OpenSpielGame("kuhn_poker")
        shown = env.reset(seed=seed).split("\n")[0]
        dealt = str(env._state).split()
        assert shown == dealt[0]
        assert env.open_state is None


def test_moves_made_at_the_same_time_are_not_told():
    env = OpenSpielGame("goofspiel", player=1, opponent="last")
    shown = env.reset(seed=0)
    assert "P0 hand" in shown
    assert not re.search(r"Bid|Partial", shown.split("You are")[0])


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("tictactoe", {}, "no game 'tictactoe'. Did you mean tic_tac_toe"),
        ("tarok", {}, "where no seed reaches"),
        ("mfg_garnet", {}, "mean-field"),
        ("tic_tac_toe", {"player": 2}, "player=2: tic_tac_toe has the seats 0 to 1"),
        ("catch(rows=one)", {}, "cannot load 'catch"),
    ],
)
def test_what_cannot_be_played_is_told(name: str, options: dict[str, int], words: str):
    with pytest.raises(UsageError, match=re.escape(words)):
        openspiel.game(name, **options)


def test_parameters_of_a_game_count():
    env = find_world("openspiel:catch(rows=4,columns=3)").factory()
    assert len(env.reset(seed=1).split("\n")) == 5


def test_the_search_beats_a_random_player():
    world = find_world("openspiel:tic_tac_toe")
    games = list(play_episodes(world, world.policy("solver"), episodes=10, seed=0))
    assert sum(game.is_win for game in games) >= 8
    assert "solver" not in find_world("openspiel:kuhn_poker").policies


@pytest.mark.report("P202")
def test_without_openspiel_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "pyspiel", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'corral\[openspiel\]'"):
        find_world("openspiel:catch")
    assert find_world("catch").factory is Catch
