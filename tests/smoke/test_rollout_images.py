"""A user's own function plays prompts with images."""

from pathlib import Path
from typing import Any

import pytest
import torch

from corral import GRPOConfig, GRPOTrainer, UsageError
from support.gallery import picture
from support.tiny_vlms import tiny_vlm

SHOWN = [picture(1), picture(2)]
ROWS = [
    {"prompt": [{"role": "user", "content": "Compare them."}], "images": SHOWN},
    {"prompt": "What is it?", "image": picture(3)},
]


class Letters:
    """Renders prompts with the processor, and writes a letter for each member of a group."""

    def __init__(self, **changes: Any) -> None:
        self.changes = changes
        self.prompt_ids: list[list[int]] = []

    def __call__(self, prompts: list[Any], trainer: GRPOTrainer) -> dict[str, Any]:
        processor = trainer.processing_class
        self.prompt_ids = [
            processor.apply_chat_template(
                prompt, add_generation_prompt=True, tokenize=True, return_dict=True
            )["input_ids"][0]
            for prompt in prompts
        ]
        ends = processor.tokenizer.eos_token_id
        return {
            "prompt_ids": self.prompt_ids,
            "completion_ids": [[97 + place, 65, ends] for place in range(len(prompts))],
            "logprobs": None,
        } | self.changes


def trainer(folder: Path, family: str, function: Any) -> GRPOTrainer:
    model, processor = tiny_vlm(family)
    return GRPOTrainer(
        model,
        lambda completion_ids, **_: [float(ids[0]) for ids in completion_ids],
        GRPOConfig(
            output_dir=str(folder),
            max_steps=1,
            per_device_train_batch_size=4,
            num_generations=2,
            token_budget=1,
            shuffle_dataset=False,
        ),
        ROWS,
        processing_class=processor,
        rollout_func=function,
    )


@pytest.mark.parametrize("family", ["qwen3_vl", "idefics3"])
def test_images_of_the_data_are_learned_from(tmp_path: Path, family: str) -> None:
    play = Letters()
    made = trainer(tmp_path, family, play)
    seen: list[dict[str, Any]] = []

    def note(module: Any, arguments: Any, given: dict[str, Any]) -> None:
        if torch.is_grad_enabled():
            seen.append(given)

    made.model.model.register_forward_pre_hook(note, with_kwargs=True)  # type: ignore[union-attr]
    made.train()
    made.end()
    reader = made.chat.images
    assert reader is not None
    assert len(seen) == 4
    for prompt_ids, pictures in ((play.prompt_ids[0], SHOWN), (play.prompt_ids[2], [picture(3)])):
        expected = reader.inputs(pictures, reader.token * len(pictures))
        rows = [
            given
            for given in seen
            if given["input_ids"][0].tolist()[: len(prompt_ids)] == list(prompt_ids)
        ]
        assert len(rows) == 2
        for row in rows:
            for name in reader.axes:
                assert torch.equal(row[name], expected[name])


def test_ids_without_the_images_of_their_prompt_are_refused(tmp_path: Path) -> None:
    play = Letters(prompt_ids=[[40, 41]] * 4)
    with pytest.raises(UsageError, match=r"prompt_ids of task 0: 2 images should take .* has 0"):
        trainer(tmp_path, "qwen3_vl", play).train()


def test_images_of_what_others_wrote_are_refused(tmp_path: Path) -> None:
    made = trainer(tmp_path, "qwen3_vl", play := Letters())
    assert made.chat.images is not None
    play.changes = {
        "completion_ids": [[97 + n, made.chat.images.token_id, 65] for n in range(4)],
        "env_mask": [[1, 0, 1]] * 4,
    }
    with pytest.raises(UsageError, match=r"images in prompts only\. .* environment_factory"):
        made.train()
