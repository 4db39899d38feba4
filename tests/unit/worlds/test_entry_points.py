"""Other packages add worlds by entry points; one that is broken is told and hinders nobody."""

from pathlib import Path

import pytest

from corral.errors import UsageError
from corral.worlds import WORLDS, added_worlds, find_world
from corral.worlds.entry_points import added_names
from corral.worlds.play import play_scripted

MAZE = '''
from corral.worlds import World


def tasks(seed, count):
    return [{"prompt": "Go.", "doors": 2 + seed % 2} for _ in range(count)]


class Maze:
    """Find the way out."""

    won = False

    def reset(self, doors: int, **kwargs) -> None:
        self.doors, self.won = doors, False

    def go(self, door: int) -> str:
        """Go through a door.

        Args:
            door: Which one.
        """
        self.won = door == self.doors
        return "out" if self.won else "a wall"

    def get_reward(self) -> float:
        return float(self.won)


LARGE = World(
    name="whatever",
    summary="A large maze.",
    factory=Maze,
    tasks=tasks,
    evaluation_tasks=lambda count: tasks(0, count),
    is_win=lambda env: env.won,
)
NOTHING = object
'''


def install(folder: Path, package: str, source: str, **points: str) -> None:
    """What pip leaves of a package with entry points."""
    (folder / f"{package}.py").write_text(source, encoding="utf-8")
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name.replace('_', '-')} = {value}" for name, value in points.items()]
    (about / "entry_points.txt").write_text("\n".join(["[corral.worlds]", *lines]) + "\n")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages: one good, two not."""
    install(tmp_path, "mazes", MAZE, maze="mazes:Maze", large="mazes:LARGE", bare="mazes:NOTHING")
    install(tmp_path, "broken_maze", "import no_such_module", crooked="broken_maze:Maze")
    install(tmp_path, "rival", "", wordle="rival:Wordle")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_class_and_a_world_of_a_package_are_found_by_name(packages: Path):
    maze, large = find_world("maze"), find_world("large")
    assert (maze.name, maze.summary) == ("maze", "Find the way out.")
    assert (large.name, large.summary) == ("large", "A large maze.")
    (row,) = maze.tasks(1, 1)
    assert row["doors"] == 3
    assert play_scripted(maze, maze.policy("random"), row, 0, max_calls=2).error is None


def test_listing_names_what_cannot_be_played_and_keeps_the_rest(packages: Path):
    worlds, failures = added_worlds()
    assert set(worlds) >= {"maze", "large"}
    assert "that broken_maze adds (broken_maze:Maze) cannot be imported" in failures["crooked"]
    assert "No module named 'no_such_module'" in failures["crooked"]
    assert "is no environment" in failures["bare"]
    assert "a built-in name" in failures["wordle"]
    assert not set(worlds) & set(failures)


def test_a_built_in_name_cannot_be_taken(packages: Path):
    assert find_world("wordle") is WORLDS["wordle"]


def test_a_broken_world_is_told_by_name_and_package(packages: Path):
    with pytest.raises(UsageError, match=r"The world 'crooked' that broken_maze adds .*cannot be"):
        find_world("crooked")


def test_an_unknown_name_lists_what_packages_add(packages: Path):
    with pytest.raises(UsageError, match=r"Added by packages: .*maze.*\. For a class"):
        find_world("labyrinth")


def test_two_packages_with_one_name_are_told(packages: Path):
    install(packages, "other_mazes", MAZE, maze="other_mazes:Maze")
    with pytest.raises(UsageError, match="packages mazes, other_mazes each add a world 'maze'"):
        find_world("maze")
    assert "maze" in added_worlds()[1]


def test_without_packages_nothing_is_added():
    assert not {"maze", "large"} & set(added_names())
