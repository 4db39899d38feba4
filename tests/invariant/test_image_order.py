"""Images of the data, of ``reset`` and of two tools add up in order, wherever they are looked at.

A run is watched from outside: what the model's own forward is called with while it samples and
while it learns, and what a reward function reads.
"""

import operator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from corral import GRPOConfig, GRPOTrainer
from corral.chat import ChatFormat
from corral.chat.pictures import pictures_of
from corral.env import prepare
from corral.records import Message, ToolCall
from support.forced_engine import ForcedEngine, ForcedTurn
from support.gallery import Gallery, picture
from support.tiny_vlms import FAMILIES, tiny_vlm

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch.*")

DATA = [picture(50), picture(51)]
TURNS = (
    [("look", {"room": 1})],
    [("survey", {"floor": 7}), ("look", {"room": 2})],
    [],
)
"""What is called in each turn; the last one calls nothing."""

SHOWN = [*DATA, picture(9), picture(101), picture(200), picture(207), picture(102)]
"""Two of the data, one of ``reset``, then what tools showed in two turns."""


class House(Gallery):
    """Rooms to look into, and floors of which there are two pictures."""

    def survey(self, floor: int) -> list[dict[str, Any]]:
        """Survey a floor.

        Args:
            floor: Its number.
        """
        return [
            {"type": "image", "image": picture(200)},
            {"type": "text", "text": "from the north, and from the south"},
            {"type": "image", "image": picture(200 + floor)},
        ]


TOOLS = prepare(House).tools.schemas


@dataclass(kw_only=True)
class Watched:
    """One run of a group of two, of which the first member plays ``TURNS``."""

    trainer: GRPOTrainer
    engine: ForcedEngine
    sampling: list[dict[str, Any]] = field(default_factory=list)
    """What forward passes that sample were given."""
    learning: list[dict[str, Any]] = field(default_factory=list)
    """What forward passes with a gradient were given: one for each row."""
    messages: list[list[Message]] = field(default_factory=list)
    """The conversations that a reward function read."""


def play(folder: Path, family: str) -> Watched:
    model, processor = tiny_vlm(family)
    chat = ChatFormat.for_tokenizer(processor, tools=TOOLS)

    def turn_of(conversation: str, turn: int) -> ForcedTurn | None:
        if "/" not in conversation:
            return None  # the proof at the start
        called = TURNS[turn] if conversation.endswith("/0") else []
        calls = [ToolCall(name=name, arguments=given).as_message_part() for name, given in called]
        said: Message = {"role": "assistant", "content": "" if calls else "done"}
        return ForcedTurn(ids=tuple(chat.turn_ids({**said, "tool_calls": calls})))

    def reward(prompts: list[Any], completions: list[Any], **columns: Any) -> list[float]:
        watched.messages += map(operator.add, prompts, completions)
        return [1.0, 0.0]

    engine = ForcedEngine(model, turn_of)
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=reward,
        processing_class=processor,
        args=GRPOConfig(
            output_dir=str(folder),
            max_steps=1,
            per_device_train_batch_size=2,
            num_generations=2,
            max_completion_length=900,
            token_budget=1,  # each row is a micro-batch of its own
        ),
        train_dataset=[{"prompt": "Look.", "seed": 9, "images": DATA}],
        environment_factory=House,
        engine=engine,
    )
    watched = Watched(trainer=trainer, engine=engine)

    def note(module: Any, arguments: Any, given: dict[str, Any]) -> None:
        is_learning = torch.is_grad_enabled()
        (watched.learning if is_learning else watched.sampling).append(given)

    trainer.model.model.register_forward_pre_hook(note, with_kwargs=True)  # type: ignore[union-attr]
    trainer.train()
    trainer.end()
    return watched


@pytest.mark.contract(30)
@pytest.mark.parametrize("family", FAMILIES)
def test_images_are_read_sampled_and_learned_in_the_order_they_were_shown(
    tmp_path: Path, family: str
) -> None:
    watched = play(tmp_path, family)
    chat = watched.trainer.chat
    calls = [call for call in watched.engine.calls if call.conversation.endswith("/0")]
    row = max(watched.learning, key=lambda given: given["input_ids"].shape[1])
    assert len(calls) == len(TURNS)
    assert len(watched.learning) == 2

    # What reward functions read.
    assert [shown.tobytes() for shown in pictures_of(watched.messages[0])] == [
        shown.tobytes() for shown in SHOWN
    ]

    # Text: placeholders stand where the template shows the pictures, as many as each takes.
    rendered = chat.prompt(chat.loaded(watched.messages[0][:-1]), TOOLS)
    assert calls[-1].prompt_ids == tuple(rendered.ids)
    assert [placed.image.picture.tobytes() for placed in calls[-1].images] == [
        shown.tobytes() for shown in SHOWN
    ]

    # Ids: what was read and sampled in each turn is what is learned from.
    ids = row["input_ids"][0].tolist()
    for call in calls:
        so_far = [*call.prompt_ids, *call.sampled.ids]
        assert ids[: len(so_far)] == so_far
    assert ids == so_far

    # Pixels: those of the processor on all pictures. While it samples the model sees each once:
    # members begin alike, and what a turn has read is kept for the next.
    assert chat.images is not None
    made = chat.images.inputs(SHOWN, chat.images.token * len(SHOWN))
    for name, axis in chat.images.axes.items():
        assert torch.equal(row[name], made[name])
        seen = [given.get(name) for given in watched.sampling]
        sampled = [value for value in seen if value is not None]
        assert torch.equal(torch.cat(sampled, dim=axis), made[name])
