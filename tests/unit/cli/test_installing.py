from dataclasses import replace
from pathlib import Path

import pytest

from corral.cli import installing
from corral.errors import CorralError
from corral.hosting import places
from corral.worlds import FAMILIES, WORLDS, Family, Needs, guess_number

NEEDS = Needs(requirements=("no_such_thing==1.0",), modules=("no_such_thing",), size_mb=10)


@pytest.fixture(autouse=True)
def needy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A world whose environment is not there; returns the folder for it."""
    monkeypatch.setenv("CORRAL_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(WORLDS, "needy", replace(guess_number.WORLD, name="needy", needs=NEEDS))
    return places.place_of("needy", NEEDS)


def note_in(folder: Path) -> None:
    folder.mkdir(parents=True)
    note = places.Note(world="needy", requirements=(), python="3.11.7", size_bytes=2_000_000)
    places.write_note(folder, note)


@pytest.mark.parametrize("command", ["play", "serve", "check"])
def test_without_a_terminal_the_command_to_run_is_told(corral, command: str):
    ran = corral(command, "needy")
    assert ran.code == 2
    assert "corral install needy" in ran.err


@pytest.mark.parametrize(("answer", "is_made"), [("y\n", True), ("\n", False), ("n\n", False)])
def test_at_a_terminal_the_user_is_asked(corral, monkeypatch, answer: str, is_made: bool):
    made: list[str] = []

    def install(world, *, tell):
        made.append(world.name)
        raise CorralError("enough")

    monkeypatch.setattr("corral.hosting.install", install)
    monkeypatch.setattr(installing, "_is_somebody_there", lambda: True)
    ran = corral("play", "needy", "--policy", "solver", stdin=answer)
    assert "about 10 MB" in ran.err
    assert made == ["needy"] * is_made
    assert ran.code == (1 if is_made else 2)


def test_what_is_there_is_listed_and_what_is_not(corral, needy: Path):
    assert "corral install needy" in corral("install", "--list").err
    note_in(needy)
    (listed,) = corral("install", "--list", "--json").objects()
    assert listed["installed"] == [
        {"world": "needy", "folder": str(needy), "python": "3.11.7", "size_bytes": 2_000_000}
    ]
    assert "corral install needy" not in corral("install", "--list").err


def test_what_is_removed_is_gone(corral, needy: Path):
    note_in(needy)
    (gone,) = corral("install", "needy", "--remove", "--json").objects()
    assert gone["state"] == "removed"
    assert not needy.exists()
    assert "no virtual environment" in corral("install", "needy", "--remove").err


def test_a_family_is_installed_by_its_name(corral, monkeypatch):
    needs = replace(NEEDS, shared_as="kin")
    family = Family(
        name="kin",
        summary="Many worlds.",
        world=lambda name: replace(guess_number.WORLD, name=f"kin:{name}", needs=needs),
        needs=needs,
    )
    monkeypatch.setitem(FAMILIES, "kin", family)
    assert "corral install kin" in corral("play", "kin:small", "--policy", "random").err
    assert "corral install kin" in corral("install", "--list").err
    folder = places.place_of("kin", needs)
    folder.mkdir(parents=True)
    note = places.Note(world="kin", requirements=(), python="3.11.7", size_bytes=1_000_000)
    places.write_note(folder, note)
    (ready,) = corral("install", "kin", "--json").objects()
    assert (ready["world"], ready["state"], ready["folder"]) == ("kin", "ready", str(folder))
    (gone,) = corral("install", "kin:small", "--remove", "--json").objects()
    assert (gone["world"], gone["state"]) == ("kin", "removed")
    assert not folder.exists()


def test_a_name_is_needed(corral):
    ran = corral("install")
    assert ran.code == 2
    assert "--list" in ran.err
