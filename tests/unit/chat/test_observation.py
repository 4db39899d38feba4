"""What reset returns joins the last message of the prompt."""

from typing import Any

import pytest

from corral.chat import merge_observation
from corral.errors import UsageError
from corral.records import Message


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


IMAGE = {"type": "image", "image": "pixels"}


@pytest.mark.parametrize(
    ("content", "observation", "expected"),
    [
        ("Play.", None, "Play."),
        ("Play.", " Go", "Play. Go"),
        ("Play.", "", "Play."),
        (None, "Go", "Go"),
        ("Play.", [IMAGE], [text("Play."), IMAGE]),
        ([text("Play.")], "Go", [text("Play."), text("Go")]),
        ([text("Play.")], [IMAGE], [text("Play."), IMAGE]),
        ([IMAGE], None, [IMAGE]),
    ],
)
@pytest.mark.contract(9)
def test_the_observation_is_added_to_the_last_message(
    content: Any, observation: Any, expected: Any
) -> None:
    first: Message = {"role": "system", "content": "Rules."}
    last: Message = {"role": "user", "content": content}
    prompt = [first, last]
    merged = merge_observation(prompt, observation)
    assert merged == [first, {"role": "user", "content": expected}]
    assert prompt == [first, {"role": "user", "content": content}]


@pytest.mark.contract(9)
def test_blocks_of_the_row_are_not_mutated() -> None:
    blocks = [text("Play.")]
    merge_observation([{"role": "user", "content": blocks}], "Go")
    assert blocks == [text("Play.")]


@pytest.mark.contract(9, 11)
def test_an_empty_prompt_becomes_a_user_message() -> None:
    assert merge_observation([], "Go") == [{"role": "user", "content": "Go"}]


@pytest.mark.parametrize("observation", [3, {"text": "Go"}, b"Go"])
def test_other_observations_are_refused_with_their_type(observation: Any) -> None:
    with pytest.raises(UsageError, match=type(observation).__name__):
        merge_observation([{"role": "user", "content": ""}], observation)
