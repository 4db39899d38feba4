from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corral.errors import UsageError
from corral.training.image_columns import (
    images_of,
    refuse_images,
    tell_of_other_values,
    with_images,
)
from corral.training.tasks import task_from_row
from support.gallery import picture

PICTURE = picture(1)


@pytest.mark.parametrize(
    "value",
    [
        PICTURE,
        np.asarray(PICTURE),
        b"bytes",
        "folder/one.PNG",
        Path("folder/one.jpg"),
        "data:image/png;base64,AAAA",
        "https://example.com/picture?id=1",
        {"bytes": b"bytes", "path": None},
        {"bytes": None, "path": "one.webp"},
    ],
)
def test_pictures_are_found_in_both_columns(value: Any) -> None:
    assert images_of({"image": value}) == [value]
    assert images_of({"images": [value, value]}) == [value, value]


@pytest.mark.parametrize("value", [None, "ubuntu:22.04", 7, np.float64(1.0), {"tag": "latest"}])
def test_other_values_in_a_column_of_that_name_are_data(value: Any) -> None:
    assert images_of({"image": value, "images": None}) == []
    refuse_images([{"image": value}], model=None)


def test_other_values_in_a_column_for_pictures_are_told(caplog: pytest.LogCaptureFixture) -> None:
    tell_of_other_values([{"image": PICTURE, "images": [PICTURE, None]}, {"image": "a name"}])
    assert not caplog.text
    tell_of_other_values([{"images": [PICTURE, "/data/0001"]}])
    assert "The column 'images' has '/data/0001', which is no picture" in caplog.text


def test_pictures_stand_before_the_text_of_the_first_user_message() -> None:
    row = {
        "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "What?"}],
        "images": [PICTURE, PICTURE],
    }
    system, user = task_from_row(row, index=0, seed=0).prompt
    assert system["content"] == "s"
    assert [block["type"] for block in user["content"]] == ["image", "image", "text"]
    assert user["content"][0]["image"] is PICTURE
    assert user["content"][2]["text"] == "What?"


def test_empty_image_blocks_are_filled_in_order() -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "image", "image": None}]
    other = picture(2)
    (message,) = with_images([{"role": "user", "content": blocks}], [PICTURE, other])
    assert [block.get("image") for block in message["content"]] == [None, PICTURE, other]
    assert blocks[1] == {"type": "image"}  # the row stays as it was


def test_another_number_of_blocks_than_images_is_refused() -> None:
    blocks = [{"type": "image"}, {"type": "image"}]
    with pytest.raises(UsageError, match="2 empty image blocks, and its row 1 images"):
        with_images([{"role": "user", "content": blocks}], [PICTURE])


def test_a_prompt_without_a_user_message_has_no_place_for_images() -> None:
    with pytest.raises(UsageError, match="needs a prompt with a user message"):
        with_images([{"role": "system", "content": "s"}], [PICTURE])
