from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic_core import from_json, to_json

from corral.chat.pictures import loaded
from corral.env import call_reset, prepare
from corral.env.content import content_of, for_json, with_blocks
from support.gallery import picture

PICTURE = picture(3)
TEXT = {"type": "text", "text": "a"}
BLOCK = {"type": "image", "image": PICTURE}


@pytest.mark.report("P082")
@pytest.mark.parametrize(
    ("value", "content"),
    [
        (PICTURE, [BLOCK]),
        ([PICTURE, PICTURE], [BLOCK, BLOCK]),
        ((TEXT, BLOCK), [TEXT, BLOCK]),
        (["a", BLOCK], [TEXT, BLOCK]),
        ([TEXT, PICTURE], [TEXT, BLOCK]),
        ([TEXT, TEXT], [TEXT, TEXT]),
        (("a", "b"), "('a', 'b')"),
        (["a", "b"], "['a', 'b']"),
        ({"type": "text", "text": "a"}, "{'type': 'text', 'text': 'a'}"),
        ([], "[]"),
    ],
)
def test_pictures_become_blocks_and_everything_else_is_as_it_was(value: Any, content: Any) -> None:
    assert content_of(value) == content


def test_what_stands_beside_a_picture_must_be_something_to_show() -> None:
    with pytest.raises(TypeError, match="A list with a picture has 7 in it"):
        content_of([PICTURE, 7])


class Painter:
    """Shows its canvas without any block around it."""

    def __init__(self, shown: Any = PICTURE) -> None:
        self.shown = shown

    def reset(self) -> Any:
        return self.shown

    def paint(self) -> Any:
        """Paint."""
        return PICTURE


async def test_environments_may_return_the_picture_itself() -> None:
    assert await call_reset(Painter(), {}) == [BLOCK]
    assert await call_reset(Painter(["a", PICTURE]), {}) == [TEXT, BLOCK]
    result = await prepare(Painter).tools.bind(Painter()).call("paint", {})
    assert result.content == [BLOCK]


class Canvas:
    """Paints on one picture, or on one array."""

    def reset(self, kind: str = "picture", **row: Any) -> list[Any]:
        plain = PICTURE.copy()
        self.canvas: Any = plain if kind == "picture" else np.asarray(plain).copy()
        return [{"type": "image", "image": self.canvas}]

    def paint(self, red: int) -> list[Any]:
        """Paint a corner.

        Args:
            red: How red.
        """
        if isinstance(self.canvas, np.ndarray):
            self.canvas[0, 0] = (red, 0, 0)
        else:
            self.canvas.putpixel((0, 0), (red, 0, 0))
        return [{"type": "image", "image": self.canvas}]


@pytest.mark.parametrize("kind", ["picture", "array"])
async def test_two_calls_of_a_turn_each_show_the_canvas_as_it_was(kind: str) -> None:
    canvas = Canvas()
    shown = [await call_reset(canvas, {"kind": kind})]
    tools = prepare(Canvas).tools.bind(canvas)
    shown += [(await tools.call("paint", {"red": red})).content for red in (1, 2)]
    messages = loaded([{"role": "tool", "content": content} for content in shown])  # type: ignore[typeddict-item]
    pixels = [message["content"][0]["image"].getpixel((0, 0)) for message in messages]
    assert pixels == [PICTURE.getpixel((0, 0)), (1, 0, 0), (2, 0, 0)]


def test_pictures_survive_json(tmp_path: Path) -> None:
    path = tmp_path / "one.png"
    PICTURE.save(path)
    blocks = [
        BLOCK,
        {"type": "image", "image": path.read_bytes()},
        {"type": "image", "path": str(path)},
        {"type": "image", "url": path},
        {"type": "image", "image": np.asarray(PICTURE)},
        {"type": "image_url", "image_url": {"url": for_json(PICTURE)}},
        {"type": "image", "image": {"bytes": path.read_bytes(), "path": None}},
        TEXT,
    ]
    sent = from_json(to_json(for_json(blocks)))
    path.unlink()
    (message,) = loaded([{"role": "tool", "content": sent}])
    *shown, text = message["content"]
    assert text == TEXT
    assert {one["image"].tobytes() for one in shown} == {PICTURE.tobytes()}


def test_only_images_are_sent_from_files(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("not for others")
    with pytest.raises(OSError, match="cannot identify image file"):
        for_json([{"type": "image", "path": str(secret)}])
    assert for_json([{"type": "image", "image": "x" * 5000}]) == [
        {"type": "image", "image": "x" * 5000}
    ]


def test_values_without_pictures_stay_as_they_are() -> None:
    value = {"a": [1, "b"], "c": None}
    assert for_json(value) == value
    assert with_blocks(value) is value
