import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import SecretStr

from corral.records import Outcome
from corral.track.jsonable import as_number, dumps, to_jsonable


@pytest.mark.report("P191")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (torch.tensor(2.5), 2.5),
        (torch.tensor([1, 2]), [1, 2]),
        (torch.tensor(1.5, dtype=torch.bfloat16, requires_grad=True), 1.5),
        ({3, 1, 2}, [1, 2, 3]),
        ((1, None), [1, None]),
        (Outcome.TIMED_OUT, "timed_out"),
        ({Outcome.TIMED_OUT: 1, 2: True}, {"timed_out": 1, "2": True}),
        (Path("a/b"), "a/b"),
        (SecretStr("hunter2"), "**********"),
        (b"\xff", "b'\\xff'"),
    ],
)
def test_values_of_other_libraries_become_plain_json(value: object, expected: object):
    result = json.loads(dumps(value))
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize("make", [float, np.float64, np.float32, torch.tensor])
def test_non_finite_numbers_survive_strict_json(make):
    def refuse(name: str):
        raise AssertionError(f"{name} is not JSON")

    values = [make(math.nan), make(math.inf), make(-math.inf)]
    read = json.loads(dumps(values), parse_constant=refuse)
    assert read == ["NaN", "Infinity", "-Infinity"]
    assert math.isnan(as_number(read[0]))
    assert [as_number(value) for value in read[1:]] == [math.inf, -math.inf]


@pytest.mark.report("P186")
def test_none_is_kept_and_never_becomes_a_number():
    assert json.loads(dumps({"reward": None})) == {"reward": None}
    assert as_number(None) is None


def test_a_structure_that_contains_itself_is_cut():
    loop: list[object] = []
    loop.append(loop)
    assert "…" in json.loads(dumps(str(to_jsonable(loop))))


@pytest.mark.report("P172")
def test_lone_surrogates_and_line_separators_stay_on_one_ascii_line():
    line = dumps({"text": "a\u2028b\u0085c\x0bd\ud800 😀"})
    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert json.loads(line)["text"] == "a\u2028b\u0085c\x0bd\ud800 😀"


def test_a_dataclass_becomes_its_fields():
    @dataclass
    class Point:
        x: int
        y: float

    assert to_jsonable(Point(1, 2.0)) == {"x": 1, "y": 2.0}
