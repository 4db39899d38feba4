"""With images, too: what is trained is what was sampled, with the probability it was drawn with."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
import torch

from corral.algorithms import collate, token_logprobs
from corral.chat import ChatFormat
from corral.env import prepare
from corral.records import Episode, Group, Message, Sample, SamplingParams, Task
from corral.rollout import Limits, Player, samples
from support.forced_engine import ForcedEngine, ForcedTurn
from support.gallery import Gallery, picture
from support.tiny_vlms import FAMILIES, tiny_vlm

MEMBERS = 3
LOOK = '<tool_call>{{"name": "look", "arguments": {{"room": {room}}}}}</tool_call>'
SAID = [
    [LOOK.format(room=1), LOOK.format(room=2) + LOOK.format(room=3), "done"],
    ["nothing", "more"],
    [LOOK.format(room=1), "<tool_call>{broken</tool_call>", LOOK.format(room=4), "done"],
]


def play(model: Any, chat: ChatFormat, *, keeps_kv: bool = True) -> list[Episode]:
    stop = chat.turn_end.token
    encode = chat.renderer.tokenizer.encode

    def turn_of(conversation: str, turn: int) -> ForcedTurn:
        turns = SAID[int(conversation.partition("/")[2])]
        said = encode(turns[turn] if turn < len(turns) else "", add_special_tokens=False)
        return ForcedTurn(free=3, ids=(*said, stop))

    engine = ForcedEngine(model, turn_of, keep_kv=keeps_kv)
    player = Player(
        engine,
        chat,
        kinds={None: prepare(Gallery)},
        limits=Limits(episode_tokens=900),
        sampling=SamplingParams(max_new_tokens=1, stop_ids=chat.stop_ids),
    )
    task = Task(
        index=0, prompt=({"role": "user", "content": "Look."},), columns={"seed": 5}, seed=7
    )

    async def run() -> list[Episode]:
        (played,) = await player.play([task], MEMBERS)
        await player.aclose()
        await engine.aclose()
        return list(played.group.episodes)

    return asyncio.run(run())


def rows_of(episodes: list[Episode], chat: ChatFormat) -> list[Sample]:
    group = Group(task=episodes[0].task, episodes=tuple(episodes))
    return samples([group], [1.0] * len(episodes), stop_ids=chat.stop_ids)


def format_of(processor: Any) -> ChatFormat:
    return ChatFormat.for_tokenizer(processor, tools=prepare(Gallery).tools.schemas)


@pytest.mark.parametrize("keeps_kv", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_sampled_logprobs_are_those_of_the_learner_over_whole_rows(
    family: str, keeps_kv: bool
) -> None:
    model, processor = tiny_vlm(family)
    chat = format_of(processor)
    rows = rows_of(play(model, chat, keeps_kv=keeps_kv), chat)
    assert [len(row.images) for row in rows] == [4, 1, 3]
    batch = collate(rows, range(MEMBERS), packing=False)
    with torch.no_grad():
        scored = token_logprobs(model, batch).logprobs
    assert (scored - batch.sampling_logprobs).abs().max() < 1e-4


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_are_what_model_and_processor_make_of_them_by_themselves(family: str) -> None:
    model, processor = tiny_vlm(family)
    chat = format_of(processor)
    row = rows_of(play(model, chat), chat)[0]
    assert chat.images is not None
    pictures = [placed.image.picture for placed in row.images]
    made = chat.images.inputs(pictures, chat.images.token * len(pictures))
    ids = torch.tensor([row.ids])
    inputs = {k: v for k, v in made.items() if k not in ("input_ids", "attention_mask")}
    if "mm_token_type_ids" in inputs:
        inputs["mm_token_type_ids"] = (ids == chat.images.token_id).int()
    with torch.no_grad():
        logits = model(input_ids=ids, attention_mask=torch.ones_like(ids), **inputs).logits[0]
    expected = logits[:-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
    trained = torch.tensor(row.loss_mask[1:], dtype=torch.bool)
    logprobs = torch.tensor(row.logprobs[1:])
    assert (expected - logprobs)[trained].abs().max() < 1e-4


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_depends_on_the_image_and_teaches_the_vision_tower(family: str) -> None:
    model, processor = tiny_vlm(family)
    chat = format_of(processor)
    row = rows_of(play(model, chat), chat)[1]
    other = chat.prompt(chat.loaded([message(size=row.images[0].image.picture.size)]))
    (placed,) = row.images
    swapped = replace(placed, image=other.images[0].image)
    batches = [
        collate([replace(row, images=(image,))], [0], packing=False) for image in (placed, swapped)
    ]
    losses = [-token_logprobs(model, batch).logprobs.mean() for batch in batches]
    assert (losses[0] - losses[1]).abs() > 1e-4
    losses[0].backward()
    names = ("visual.merger", "connector", "multi_modal_projector")
    grads = [
        parameter.grad
        for name, parameter in model.named_parameters()
        if any(part in name for part in names) and parameter.ndim > 1
    ]
    assert grads
    assert all(grad is not None and grad.abs().max() > 0 for grad in grads)


def message(*, size: tuple[int, int]) -> Message:
    shown = picture(99, width=size[0], height=size[1])
    return {"role": "user", "content": [{"type": "image", "image": shown}]}
