import json
import re

import pytest

from corral.env import prepare
from corral.worlds import WORLDS
from corral.worlds.play import play_scripted
from support.worlds_here import WORLDS_HERE

BROKEN = '''
class Broken:
    """Breaks."""

    def reset(self, **row):
        raise RuntimeError("no board [today]")

    def move(self, n: int) -> str:
        """Move.

        Args:
            n: How far.
        """
        return str(n)
'''

WITHOUT_A_DOCSTRING = """
class Silent:
    def reset(self, **row):
        return None

    def move(self, n: int) -> str:
        return str(n)
"""

TWO_TOOLS = '''
class Door:
    """A door."""

    def reset(self, **row):
        self.done = False
        return "A door."

    def push(self, force: int) -> str:
        """Push.

        Args:
            force: How hard.
        """
        self.done = force > 3
        return f"pushed {force + 0}"

    def look(self) -> str:
        """Look."""
        return "still a door"
'''


@pytest.mark.parametrize("world", WORLDS_HERE)
@pytest.mark.parametrize("policy", ["random", "solver"])
def test_each_episode_is_one_json_object(corral, world: str, policy: str):
    ran = corral("play", world, "--policy", policy, "--episodes", "3", "--seed", "5", "--json")
    assert ran.code == 0
    games = ran.objects()
    assert [game["seed"] for game in games] == [5, 6, 7]
    for game in games:
        assert {"world", "seed", "outcome", "reward", "turns"} <= set(game)
        assert game["world"] == world
        assert game["turns"] >= 1
        assert isinstance(game["reward"], float)
    assert ran.err == ""


@pytest.mark.parametrize("world", WORLDS_HERE)
def test_each_world_is_won_by_hand(corral, world: str):
    solver = WORLDS[world].policy("solver")
    (row,) = WORLDS[world].tasks(1, 1)
    turns = play_scripted(WORLDS[world], solver, row, 1).turns
    has_choice = len(prepare(WORLDS[world].factory).tools.schemas) > 1
    typed = [
        str(answer)
        for turn in turns
        for answer in ([turn.action.tool] if has_choice else []) + [*turn.action.arguments.values()]
    ]
    ran = corral("play", world, "--seed", "1", "--json", stdin="\n".join([*typed, ""]))
    assert [game["won"] for game in ran.objects()] == [True]


def test_a_seed_names_the_same_game_whatever_is_played_before_it(corral):
    many = corral("play", "wordle", "--policy", "random", "--episodes", "3", "--json").objects()
    (alone,) = corral("play", "wordle", "--policy", "random", "--seed", "2", "--json").objects()
    assert many[2] == alone


def test_without_json_the_game_is_shown_to_people(corral):
    ran = corral("play", "guess_number", "--policy", "solver")
    assert ran.out == ""
    assert '> guess({"n": ' in ran.err
    assert "correct" in ran.err
    assert "Games" in ran.err


def test_a_person_plays_through_standard_input(corral):
    ran = corral("play", "guess_number", "--json", stdin="10\nten\n5\n" + "1\n" * 8)
    assert ran.code == 0
    (game,) = ran.objects()
    assert game["outcome"] == "stopped_by_environment"
    assert game["turns"] == 9, "a guess that is no number costs a turn of the player, not a guess"
    assert "I picked" in ran.err or "from 1 to 20" in ran.err
    assert "ten" in ran.err
    assert ran.err.count("Game over.") == 1


@pytest.mark.parametrize("stdin", ["", "\n", "crane\n", "crane\n\n"])
def test_end_of_input_or_an_empty_answer_leaves_the_game(corral, stdin: str):
    ran = corral("play", "wordle", "--json", stdin=stdin)
    assert ran.code == 0
    (game,) = ran.objects()
    assert game["outcome"] == "finished"
    assert game["turns"] == stdin.count("crane")
    assert ran.err.count("guesses left") == stdin.count("crane")


def test_a_person_chooses_among_several_tools(corral, tmp_path):
    (tmp_path / "door.py").write_text(TWO_TOOLS)
    ran = corral("play", "door.py:Door", "--json", stdin="kick\nlook\npush\n4\n")
    assert ran.code == 0
    assert "There is no tool 'kick'." in ran.err
    assert "still a door" in ran.err
    assert "pushed 4" in ran.err, "the answer was coerced to the argument's type"
    assert ran.objects()[0]["turns"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wordel"], "Unknown world 'wordel'. Built in: browser, catch, driving,"),
        (["nowhere.py:Door"], "nowhere.py"),
        (["json:Door"], "Door"),
        (
            ["wordle", "--policy", "expert"],
            "wordle has no policy 'expert'. It has: careless, random, solver.",
        ),
        (["wordle", "--policy", "random", "--model", "x"], "two players"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(corral, arguments, message: str):
    ran = corral("play", *arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("Error: ")
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_an_environment_that_fails_is_reported_and_ends_with_1(corral, tmp_path):
    (tmp_path / "failing_world.py").write_text(BROKEN)
    options = ("--policy", "random", "--episodes", "2", "--json")
    ran = corral("play", "failing_world.py:Broken", *options)
    assert ran.code == 1
    assert [game["outcome"] for game in ran.objects()] == ["environment_fault"] * 2
    assert [game["reward"] for game in ran.objects()] == [None, None]
    assert "2 of 2 games ended in a fault: Broken.reset raised RuntimeError" in ran.err
    assert "no board [today]" in ran.err


def test_a_tool_without_a_docstring_is_named(corral, tmp_path):
    (tmp_path / "silent.py").write_text(WITHOUT_A_DOCSTRING)
    ran = corral("play", "silent.py:Silent", "--policy", "random")
    assert ran.code == 2
    assert "move" in ran.err
    assert "docstring" in ran.err


GREETER = '''
class Greeter:
    """Greet."""

    def reset(self, **kwargs) -> str:
        return "Your name is Ann."

    def greet(self, who: str) -> str:
        """Greet somebody.

        Args:
            who: Whom.
        """
        return f"Hello {who}."


def tasks(seed, count):
    return [{"prompt": "Greet me. "}] * count
'''


@pytest.mark.parametrize("options", [["--policy", "random"], []])
def test_prompt_and_first_observation_are_shown_glued_as_a_model_reads_them(
    corral, tmp_path, options
):
    (tmp_path / "greeter.py").write_text(GREETER)
    ran = corral("play", "greeter.py:Greeter", *options, stdin="\n")
    assert "Greet me. Your name is Ann." in ran.err.splitlines()


SUM = '''
class Sum:
    """Add numbers up."""

    def reset(self, start: int, **kwargs) -> str:
        self.total, self.done = start, False
        return f" Start at {start}."

    def add(self, n: int) -> int:
        """Add a number.

        Args:
            n: The number.
        """
        self.total, self.done = self.total + n, True
        return self.total
'''


def test_rows_of_data_are_played_one_after_the_other(corral, tmp_path):
    (tmp_path / "sums.py").write_text(SUM)
    rows = [{"prompt": "Add.", "start": start} for start in (10, 20)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ("--policy", "random", "--dataset", "rows.jsonl", "--episodes", "3")
    shown = corral("play", "sums.py:Sum", *options).err
    assert re.findall(r"Add\. Start at (\d+)", shown) == ["10", "20", "10"]
    typed = corral("play", "sums.py:Sum", *options[2:4], "--seed", "1", "--json", stdin="5\n")
    assert "Start at 20." in typed.err
    assert typed.objects()[0]["turns"] == 1


def test_what_needs_more_than_a_prompt_is_told_of_datasets(corral, tmp_path):
    (tmp_path / "sums.py").write_text(SUM)
    ran = corral("play", "sums.py:Sum", "--policy", "random")
    assert ran.code == 2
    assert "Sum.reset needs 'start'" in ran.err
    assert "--dataset" in ran.err
    unknown = corral("play", "sums.py:Sum", "--policy", "solver")
    assert unknown.err == "Error: sums.py:Sum has no policy 'solver'. It has: random.\n"
    missing = corral("play", "sums.py:Sum", "--policy", "random", "--dataset", "none.jsonl")
    assert "--dataset='none.jsonl' does not exist" in missing.err


@pytest.mark.parametrize(
    ("environment", "command"),
    [
        ('environment = "echo"', "corral play echo --model 'runs/my run'"),
        ("", "corral play WORLD --model 'runs/my run'"),
    ],
)
def test_a_run_folder_is_no_world(corral, tmp_path, environment: str, command: str):
    (tmp_path / "runs" / "my run").mkdir(parents=True)
    (tmp_path / "runs" / "my run" / "config.toml").write_text(environment)
    ran = corral("play", "runs/my run")
    assert ran.code == 2
    assert f"runs/my run is a run folder, not a world. Its model plays with: {command}" in ran.err


TALKATIVE = '''
print("imported")


class Talkative:
    """Prints."""

    def __init__(self):
        print("made")

    def reset(self, **row):
        print("reset")

    def say(self) -> str:
        """Say something."""
        print("said")
        self.done = True
        return "Something."

    def get_reward(self) -> float:
        print("scored")
        return 1.0
'''


@pytest.mark.parametrize("command", [["play", "--policy", "random"], ["check"]])
def test_what_an_environment_prints_is_not_among_the_json(corral, tmp_path, command):
    (tmp_path / "talkative.py").write_text(TALKATIVE)
    name, *options = command
    ran = corral(name, "talkative.py:Talkative", *options, "--json")
    (line,) = ran.objects()
    assert {"imported", "made", "reset"} <= set(ran.err.split())
    assert "checks" in line or line["reward"] == 1.0


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"prompt": None, "start": 2}, "--dataset[1]: prompt is None. Give text or messages"),
        ({"prompt": 5, "start": 2}, "--dataset[1]: prompt=5: give text, or a list"),
        (
            {"prompt": [{"role": "user"}], "start": 2},
            "--dataset[1]: prompt[0] of role 'user' has no `content`",
        ),
        ({"prompt": "Add."}, "--dataset[1]: Sum.reset needs 'start'"),
        ({"start": 2}, "--dataset[1] has no `prompt`, which other rows have."),
    ],
)
@pytest.mark.parametrize("player", [["--policy", "random"], []])
def test_rows_are_checked_as_training_checks_them(corral, tmp_path, row, message, player):
    (tmp_path / "sums.py").write_text(SUM)
    rows = [{"prompt": "Add.", "start": 1}, row]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    ran = corral("play", "sums.py:Sum", *player, "--dataset", "rows.jsonl", "--seed", "1")
    assert ran.code == 2
    assert message in ran.err


def test_where_no_row_has_a_prompt_reset_brings_it(corral, tmp_path):
    (tmp_path / "sums.py").write_text(SUM)
    (tmp_path / "rows.jsonl").write_text('{"prompt": null, "start": 7}\n')
    options = ("--policy", "random", "--dataset", "rows.jsonl")
    ran = corral("play", "sums.py:Sum", *options)
    assert ran.code == 0
    assert " Start at 7." in ran.err.splitlines()
