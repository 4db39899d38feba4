from dataclasses import replace
from pathlib import Path

import pytest

from corral.errors import UsageError
from corral.hosting.places import (
    Note,
    draft_of,
    drafts_of,
    installed_at,
    installed_worlds,
    locked,
    place_of,
    write_note,
)
from corral.worlds import Needs

NEEDS = Needs(requirements=("thing==1.0",), modules=("thing",), size_mb=10)
NOTE = Note(world="it", requirements=("thing==1.0",), python="3.11.7", size_bytes=5)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CORRAL_HOME", str(tmp_path))
    return tmp_path


def test_other_requirements_have_another_folder(home: Path):
    place = place_of("it", NEEDS)
    assert place.parent == home / "worlds"
    assert place == place_of("it", replace(NEEDS, size_mb=20, modules=("other",)))
    assert place != place_of("it", replace(NEEDS, requirements=("thing==1.1",)))
    assert place != place_of("it", replace(NEEDS, python=(3, 12)))
    assert place != place_of("other", NEEDS)


def test_a_name_with_slashes_names_one_folder(home: Path):
    assert place_of("../sly/file.py:WORLD", NEEDS).parent == home / "worlds"


def test_only_a_folder_with_a_note_under_its_own_name_counts(home: Path):
    place = place_of("it", NEEDS)
    draft_of(place).mkdir(parents=True)
    write_note(draft_of(place), NOTE)
    (home / "worlds" / "half-made").mkdir()
    assert installed_at(place) is None
    assert installed_worlds() == []
    draft_of(place).rename(place)
    (found,) = installed_worlds()
    assert found == installed_at(place)
    assert found.note == NOTE
    (place / "corral-world.json").write_text('{"world": ')
    assert installed_at(place) is None


def test_drafts_are_those_of_the_world_alone(home: Path):
    mine, others = draft_of(place_of("it", NEEDS)), draft_of(place_of("it-too", NEEDS))
    for draft in (mine, others):
        draft.mkdir(parents=True)
    assert drafts_of("it") == [mine]


def test_a_home_that_cannot_be_written_is_told(home: Path, monkeypatch: pytest.MonkeyPatch):
    (home / "file").touch()
    monkeypatch.setenv("CORRAL_HOME", str(home / "file"))
    with pytest.raises(UsageError, match="Set CORRAL_HOME"), locked("it"):
        pass
