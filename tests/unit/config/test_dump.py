import math
import tomllib
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from corral.config import dump, is_secret_name, load, redact


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(Strict):
    x: int = 1
    note: str | None = None


class Everything(Strict):
    whole: int = 3
    big: int = 2**63 - 1
    real: float = 1e-6
    endless: float = math.inf
    flag: bool = True
    text: str = 'quotes " \\ \n new line, ü 😀 \u2028 # no comment'
    looks_like_none: str = "none"
    choice: Literal["a", "none"] = "none"
    choice_or_none: Literal["a", "none"] | None = None
    number_or_none: int | None = 4
    text_or_none: str | None = "none"
    colour: Colour = Colour.BLUE
    folder: Path = Path("a/b")
    moment: datetime = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    day: date = date(2024, 5, 6)
    clock: time = time(7, 8)
    pause: timedelta = timedelta(seconds=90)
    exact: Decimal = Decimal("0.10")
    numbers: list[int] = [1, 2]
    holes: list[int | None] = [1, None]
    pair: tuple[int, str] = (1, "a")
    names: set[str] = {"one"}  # the order of several would depend on the process
    nested: list[list[float]] = [[1.0], []]
    empty: list[int] = []
    untyped: dict[str, Any] = {"enable thinking": False, "none": None, "deep": {"a": [1, {"b": 2}]}}
    by_number: dict[int, float] = {1: 0.5}
    nothing: dict[str, int] = {}
    inner: Inner = Inner()
    maybe: Inner | None = Inner(x=2)
    many: list[Inner] = [Inner(x=1), Inner(x=2, note="n")]
    named: dict[str, Inner] = {"one": Inner(), "two.dots": Inner(x=5)}
    secret: SecretStr | None = None


CHANGES: list[dict[str, Any]] = [
    {},
    {"number_or_none": None, "text_or_none": None, "choice_or_none": "none"},
    {"maybe": None, "many": [], "named": {}, "untyped": {}, "holes": [None, None]},
    {"inner": Inner(x=9, note="none"), "colour": "red", "flag": False, "text": ""},
]


@pytest.mark.report("P199")
@pytest.mark.parametrize("changes", CHANGES)
def test_what_is_dumped_loads_as_it_was(changes: dict[str, Any]):
    first = load({}, [], Everything)
    value = Everything.model_validate({**first.value.model_dump(), **changes})
    resolved = type(first)(value=value, origins={})
    again = load(dump(resolved), [], Everything)
    assert again.value == value
    assert repr(again.value) == repr(value)


@pytest.mark.report("P199")
def test_every_value_says_where_it_is_from():
    class Section(Strict):
        rate: float = 1e-6
        turns: int | None = None
        steps: int = 1

    class Recipe(Strict):
        seed: int = 0
        grpo: Section = Section()

    text = dump(load("seed = 2", ["grpo.steps=5"], Recipe))
    lines = [" ".join(line.split()) for line in text.split("\n")]
    assert lines == [
        "seed = 2 # recipe",
        "",
        "[grpo]",
        "rate = 1e-06 # default",
        "# turns = none # default",
        "steps = 5 # --set",
        "",
    ]


def test_none_against_a_default_is_written_out():
    text = dump(load({}, ["number_or_none=none", "text_or_none=none"], Everything))
    data = tomllib.loads(text)
    assert data["number_or_none"] == "none"
    assert data["text_or_none"] == {"none": True}


@pytest.mark.report("P213")
def test_secrets_are_left_out():
    class Recipe(Strict):
        openai_api_key: SecretStr | None = None
        hf_token: str | None = None
        max_output_tokens: int = 5
        eos_token: str = "<end>"
        url: str = "https://me:hunter2@host/x"
        headers: dict[str, str] = Field(default={"Authorization": "Bearer hunter2", "Accept": "*"})

    data = {"openai_api_key": "hunter2", "hf_token": "hunter2"}
    text = dump(load(data, [], Recipe))
    assert "hunter2" not in text
    assert "max_output_tokens = 5" in text
    assert 'eos_token = "<end>"' in text
    assert "# hf_token: a secret, not saved" in text
    assert load(text, [], Recipe).value.hf_token is None


@pytest.mark.parametrize(
    "name",
    ["api_key", "OPENAI_API_KEY", "hf_token", "token", "password", "db-password", "client_secret",
     "Authorization", "X-Api-Key"],
)  # fmt: skip
def test_names_of_secrets(name: str):
    assert is_secret_name(name)


@pytest.mark.report("P213")
@pytest.mark.parametrize(
    "name",
    ["max_output_tokens", "eos_token", "pad_token", "tokens", "tokenizer", "secretary", "keys",
     "token_budget", "num_tokens", "password_length"],
)  # fmt: skip
def test_names_that_only_look_like_secrets(name: str):
    assert not is_secret_name(name)


def test_redacting_changes_a_copy_only():
    data = {"a": [{"password": "x", "n": 1}], "token": None, "url": "wss://u@h/p"}
    assert redact(data) == {
        "a": [{"password": "**********", "n": 1}],
        "token": None,
        "url": "wss://**********@h/p",
    }
    assert data["a"] == [{"password": "x", "n": 1}]


def test_a_secret_in_a_command_line_is_masked_on_request():
    command = ["--set model.api_key=sk-1 --set a.max_tokens=5", "--hf-token=abc", "x=1"]
    assert redact(command, in_commands=True) == [
        "--set model.api_key=********** --set a.max_tokens=5",
        "--hf-token=**********",
        "x=1",
    ]
    assert redact(command) == command
