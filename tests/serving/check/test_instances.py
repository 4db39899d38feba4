"""Instances derived from JSON Schemas, judged by a validator that knows nothing of them."""

from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from corral.serve.check.instances import NoInstanceError, invalid_instances, valid_instance

jsonschema = pytest.importorskip("jsonschema")


class Colour(Enum):
    RED = "red"


class Inner(BaseModel):
    when: str = Field(min_length=3, max_length=5)


class Action(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["go"]
    colour: Colour
    count: int = Field(ge=3, multiple_of=2)
    share: float = Field(gt=0.0, lt=1.0)
    inner: Inner
    many: list[Inner] = Field(min_length=2)
    either: int | str
    perhaps: Inner | None
    note: str = "x"


SCHEMAS: list[dict[str, Any]] = [
    Action.model_json_schema(),
    Inner.model_json_schema(),
    {"oneOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "object", "required": ["b"]}}},
    {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"b": {"const": 7}}, "required": ["b"]},
        ]
    },
    {"type": ["null", "array"], "prefixItems": [{"type": "boolean"}], "minItems": 2},
    {"type": "integer", "exclusiveMinimum": 4, "maximum": 5},
    {"type": "number", "maximum": -1},
    {"type": "string", "format": "uuid"},
    {"type": "string", "pattern": "^[a-z]+\\d$", "examples": ["a1"]},
    {"anyOf": [{"type": "string", "pattern": "^\\d$"}, {"type": "null"}]},
    {},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: next(iter(schema), "anything"))
def test_a_valid_instance_is_valid(schema: dict[str, Any]) -> None:
    jsonschema.validate(valid_instance(schema), schema)


def test_each_invalid_instance_is_invalid_and_says_why() -> None:
    schema = Action.model_json_schema()
    made = list(invalid_instances(schema))
    for _, instance in made:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(instance, schema)
    reasons = {reason for reason, _ in made}
    assert {"count left out", "count of a wrong type", "an unknown field"} <= reasons


def test_a_mark_of_the_kind_is_left_alone() -> None:
    reasons = [reason for reason, _ in invalid_instances(Action.model_json_schema())]
    assert "kind of a wrong type" not in reasons


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^[A-Z]{5}$"},
        {"$ref": "#/$defs/nowhere"},
        {
            "$ref": "#/$defs/a",
            "$defs": {"a": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/a"}}},
        },
        {"type": "integer", "minimum": 5, "maximum": 4},
    ],
    ids=["pattern", "reference", "endless", "contradiction"],
)
def test_what_cannot_be_derived_is_said(schema: dict[str, Any]) -> None:
    with pytest.raises(NoInstanceError):
        valid_instance(schema)
