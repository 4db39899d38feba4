import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from corral.chat.pictures import loaded, open_picture
from corral.errors import ImageError
from support.gallery import picture

PICTURE = picture(3)
PNG = io.BytesIO()
PICTURE.save(PNG, format="PNG")
BASE64 = base64.b64encode(PNG.getvalue()).decode()
DATA_URL = f"data:image/png;base64,{BASE64}"


@pytest.fixture(scope="module")
def png(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pictures") / "one.png"
    path.write_bytes(PNG.getvalue())
    return path


def blocks(png: Path) -> list[dict[str, Any]]:
    return [
        {"type": "image", "image": PICTURE},
        {"type": "image", "image": np.asarray(PICTURE)},
        {"type": "image", "image": PNG.getvalue()},
        {"type": "image", "image": str(png)},
        {"type": "image", "image": DATA_URL},
        {"type": "image", "image": {"bytes": PNG.getvalue(), "path": None}},
        {"type": "image", "path": str(png)},
        {"type": "image", "url": png.as_uri()},
        {"type": "image", "base64": BASE64},
        {"type": "image", "image": BASE64},
        {"type": "image", "data": BASE64, "mimeType": "image/png"},
        {"type": "image_url", "image_url": {"url": DATA_URL}},
        {"type": "image_url", "image_url": DATA_URL},
    ]


def test_every_form_of_an_image_block_gives_the_same_picture(png: Path) -> None:
    (message,) = loaded([{"role": "user", "content": blocks(png)}])
    shown = [block["image"] for block in message["content"]]
    assert {block["type"] for block in message["content"]} == {"image"}
    assert {(one.mode, one.size, one.tobytes()) for one in shown} == {
        ("RGB", PICTURE.size, PICTURE.tobytes())
    }


def test_a_canvas_painted_on_later_does_not_change_what_was_shown() -> None:
    canvas = Image.new("RGB", (8, 8), (1, 2, 3))
    (message,) = loaded([{"role": "tool", "content": [{"type": "image", "image": canvas}]}])
    canvas.paste((9, 9, 9), (0, 0, 8, 8))
    assert message["content"][0]["image"].getpixel((0, 0)) == (1, 2, 3)


def test_text_is_left_alone() -> None:
    messages: list[Any] = [
        {"role": "user", "content": "text"},
        {"role": "user", "content": [{"type": "text", "text": "block"}]},
    ]
    assert loaded(messages) == messages


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"no picture", "no readable image"),
        ("missing.png", "missing.png"),
        ("https://example.com/a.png", "download it first"),
        ("data:image/png;base64,!!!", "no readable image"),
        (3.5, "3.5 is no image"),
        ({"type": "image"}, "no image"),
        (np.zeros((2, 2, 2, 2)), "no readable image"),
    ],
)
def test_what_is_no_picture_is_named(source: Any, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        open_picture(source)


def test_an_error_does_not_repeat_the_whole_source() -> None:
    with pytest.raises(ImageError) as caught:
        open_picture("QUJD" * 500)
    assert len(str(caught.value)) < 400


def test_a_block_without_a_picture_is_named() -> None:
    with pytest.raises(ImageError, match=r"has no picture: .*\['type'\]"):
        loaded([{"role": "user", "content": [{"type": "image"}]}])


def test_a_picture_that_would_fill_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    with pytest.raises(ImageError, match="decompression bomb"):
        open_picture(PNG.getvalue())
