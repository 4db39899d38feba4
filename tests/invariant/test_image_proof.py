"""The start-up proof for images: what it lets through, and what it stops."""

from typing import Any

import pytest

from corral.chat import ChatFormat
from corral.engines.torch_engine import TorchEngine
from corral.errors import UsageError
from corral.training.image_proof import prove_images
from support.tiny_vlms import FAMILIES, tiny_vlm


def prove(family: str) -> None:
    model, processor = tiny_vlm(family)
    chat = ChatFormat.for_tokenizer(processor, needs_tools=False)
    prove_images(model, chat, TorchEngine(model))


@pytest.mark.parametrize("family", FAMILIES)
def test_models_that_read_images_from_left_to_right_pass(family: str) -> None:
    prove(family)


@pytest.mark.parametrize(
    ("module", "who"),
    [("engines.torch_engine.images", "the engine"), ("algorithms.logprobs", "the learner")],
)
def test_positions_that_ignore_the_picture_are_noticed(
    monkeypatch: pytest.MonkeyPatch, module: str, who: str
) -> None:
    monkeypatch.setattr(f"corral.{module}.rope_owner", lambda model: None)
    with pytest.raises(UsageError, match=f"{who}'s logprobs differ .*processing_class=tokenizer"):
        prove("qwen3_vl")


def test_an_image_in_the_wrong_place_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from corral.vision import inputs

    joined = inputs.joined

    def reversed_images(images: Any) -> Any:
        return joined(list(images)[::-1])

    monkeypatch.setattr(inputs, "joined", reversed_images)
    with pytest.raises(UsageError, match="does not see images alike"):
        prove("llava")
