"""Names of the worlds of families."""

import re
from typing import Any

import pytest

from corral.errors import UsageError
from corral.worlds.family import read_name


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("CartPole-v1", "CartPole-v1", {}),
        (" lake ", "lake", {}),
        ("lake()", "lake", {}),
        (
            "lake(size=4, names=['a', 'b'], wet=False)",
            "lake",
            {"size": 4, "names": ["a", "b"], "wet": False},
        ),
        ("a.b:Lake-v0(shift=-1.5, text='(')", "a.b:Lake-v0", {"shift": -1.5, "text": "("}),
    ],
)
def test_a_name_has_options_in_brackets(text: str, name: str, options: dict[str, Any]):
    assert read_name(text) == (name, options)


@pytest.mark.parametrize(
    "text",
    ["", "lake(", "lake(4)", "lake(size=four)", "lake(**{})", "lake(size=open('x'))", "(a=1)"],
)
def test_what_is_no_option_is_told(text: str):
    with pytest.raises(UsageError, match=re.escape(f"{text!r} cannot be read")):
        read_name(text)
