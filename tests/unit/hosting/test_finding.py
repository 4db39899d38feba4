import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corral.errors import UsageError
from corral.hosting import NotInstalledError, find_environment, hosted_environment, install, places
from corral.worlds import WORLDS, Family, Needs, World, find_installable, guess_number
from corral.worlds.registry import FAMILIES

NEEDS = Needs(requirements=("no_such_thing==1.0",), modules=("no_such_thing",), size_mb=10)
NEEDY = replace(guess_number.WORLD, name="needy", needs=NEEDS)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CORRAL_HOME", str(tmp_path))
    return tmp_path


def listed(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    monkeypatch.setitem(WORLDS, "needy", world)


def note_in(folder: Path) -> None:
    folder.mkdir(parents=True)
    places.write_note(
        folder, places.Note(world="needy", requirements=(), python="3.11.7", size_bytes=1)
    )


def test_a_world_without_needs_runs_here():
    assert find_environment("guess_number") is guess_number.WORLD
    assert hosted_environment("guess_number") is None
    assert hosted_environment("corral.worlds.echo.env:Echo") is None


def kin(needs: Needs) -> Family:
    return Family(
        name="kin",
        summary="Many worlds.",
        world=lambda name: replace(NEEDY, name=f"kin:{name}", needs=needs),
        needs=needs,
    )


def test_a_world_of_a_family_is_found_like_others(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(FAMILIES, "kin", kin(NEEDS))
    with pytest.raises(NotInstalledError, match="corral install kin:small"):
        find_environment("kin:small")


def test_worlds_of_a_family_share_an_environment(monkeypatch: pytest.MonkeyPatch):
    needs = replace(NEEDS, shared_as="kin")
    monkeypatch.setitem(FAMILIES, "kin", kin(needs))
    with pytest.raises(NotInstalledError, match=r"corral install kin$"):
        find_environment("kin:small")
    assert find_installable("kin") is FAMILIES["kin"]
    assert find_installable("kin").home == find_installable("kin:small").home == "kin"
    note_in(places.place_of("kin", needs))
    small: Any = find_environment("kin:small").factory
    large: Any = find_environment("kin:large").factory
    assert small.python == large.python
    assert (small.world, large.world) == ("kin:small", "kin:large")


def test_a_family_alone_is_no_world(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(FAMILIES, "kin", kin(NEEDS))
    with pytest.raises(UsageError, match="Name one of them: kin:NAME"):
        find_environment("kin")


def test_a_family_may_take_addresses(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(FAMILIES, "kin", kin(NEEDS))
    with pytest.raises(NotInstalledError):
        find_environment("kin:http://127.0.0.1:1/mcp")


def test_a_world_whose_modules_are_here_runs_here(monkeypatch: pytest.MonkeyPatch):
    here = replace(NEEDY, needs=Needs(requirements=("json",), modules=("json",), size_mb=1))
    listed(monkeypatch, here)
    assert find_environment("needy") is here


def test_a_missing_environment_is_told_with_the_command(monkeypatch: pytest.MonkeyPatch):
    listed(monkeypatch, NEEDY)
    with pytest.raises(NotInstalledError, match=r"about 10 MB.*: corral install needy") as raised:
        find_environment("needy")
    assert raised.value.world is NEEDY


def test_what_the_system_lacks_is_told_first(monkeypatch: pytest.MonkeyPatch):
    needs = replace(NEEDS, system_problem=lambda: "Give it a browser.")
    listed(monkeypatch, replace(NEEDY, needs=needs))
    with pytest.raises(UsageError, match=r"needy cannot run here\. Give it a browser\."):
        find_environment("needy")


def test_an_installed_world_is_the_same_but_for_its_factory(monkeypatch: pytest.MonkeyPatch):
    listed(monkeypatch, NEEDY)
    folder = places.place_of("needy", NEEDS)
    note_in(folder)
    world = find_environment("needy", max_sessions=3)
    assert replace(world, factory=NEEDY.factory) == NEEDY
    hosted: Any = world.factory
    assert hosted.python == str(folder / "bin" / "python")
    assert hosted.max_sessions == 3
    assert hosted_environment("needy") == replace(hosted, max_sessions=NEEDS.max_sessions)


def test_a_broken_environment_does_not_start_itself_again(monkeypatch: pytest.MonkeyPatch):
    listed(monkeypatch, NEEDY)
    folder = places.place_of("needy", NEEDS)
    note_in(folder)
    monkeypatch.setattr(sys, "prefix", str(folder))
    with pytest.raises(UsageError, match=r"lacks no_such_thing.*--remove"):
        find_environment("needy")


def test_a_world_without_needs_is_not_installed():
    with pytest.raises(UsageError, match="echo needs nothing installed"):
        install("echo")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"requirements": ()}, "name what is installed"),
        ({"modules": ("a.b",)}, "top-level package"),
    ],
)
def test_needs_say_what_is_installed_and_what_proves_it(fields: dict, message: str):
    given = {"requirements": ("a==1",), "modules": ("a",), "size_mb": 1} | fields
    with pytest.raises(UsageError, match=message):
        Needs(**given)
