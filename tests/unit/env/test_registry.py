"""Environments are found by module:Class or file.py:Class."""

import json
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.env import prepare, resolve
from corral.errors import UsageError

SOURCE = """
from __future__ import annotations
from dataclasses import dataclass
from neighbour import GREETING

@dataclass
class Coin:
    side: str = "heads"

    def reset(self, **kwargs) -> str:
        return GREETING

    def call(self, side: str) -> str:
        '''Call the toss.

        Args:
            side: The side.
        '''
        return side

class Outer:
    class Inner:
        def reset(self): ...

NUMBER = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    imported_before = set(sys.modules)
    (tmp_path / "neighbour.py").write_text("GREETING = 'hello'")
    (tmp_path / "coin_world.py").write_text(SOURCE)
    (tmp_path / "broken.py").write_text("import nothing_of_this_name")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - imported_before:
        del sys.modules[name]


@pytest.mark.parametrize("place", ["coin_world", "coin_world.py", "./coin_world.py"])
def test_a_class_is_found_in_module_and_file(folder: Path, place: str):
    cls = resolve(f"{place}:Coin")
    assert cls().reset() == "hello"
    assert prepare(cls).tools.names == ("call",)
    assert resolve(f"{place}:Coin") is cls
    assert resolve(f"{place}:Outer.Inner").__name__ == "Inner"


def test_instances_of_a_class_from_a_file_can_be_pickled(folder: Path):
    coin = resolve(f"{folder}/coin_world.py:Coin")(side="tails")
    assert pickle.loads(pickle.dumps(coin)) == coin


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("coin", r"'coin' does not name an environment class. Write module:Class or path"),
        ("coin_world.py", r"'coin_world.py' does not name"),
        (":Coin", r"':Coin' does not name"),
        (
            "coin_world.py:Cion",
            r"'Cion' does not exist in coin_world.py. It has: coin_world.py:Coin",
        ),
        ("coin_world:NUMBER", r"'NUMBER' is not a class in coin_world"),
        ("missing.py:Coin", r"There is no file 'missing.py'"),
        ("missing_module:Coin", r"There is no module 'missing_module'"),
        ("json.missing:Coin", r"There is no module 'json.missing'"),
        ("broken.py:Coin", r"Importing broken.py failed with ModuleNotFoundError: .*nothing_of"),
        ("broken:Coin", r"Importing broken failed with ModuleNotFoundError: .*nothing_of"),
        ("neighbour.py:Coin", r"It has no class with a `reset` method"),
    ],
)
def test_what_is_not_found_is_one_clear_sentence(folder: Path, spec: str, message: str):
    with pytest.raises(UsageError, match=message) as caught:
        resolve(spec)
    assert "\n" not in str(caught.value)


def test_any_callable_is_good():
    assert resolve("json:loads") is json.loads
