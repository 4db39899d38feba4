"""Supervised fine-tuning with images against TRL's: the same tokens, the same labels, one step."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch

from corral import SFTConfig, SFTTrainer, UsageError
from corral.training.token_rows import IGNORED, RowEncoder
from support.gallery import picture
from support.tiny_vlms import tiny_vlm
from support.trl_sft import trl_trainer
from support.trl_templates import template_files

pytest.importorskip("trl", reason="trl is not installed")
pytest.importorskip("datasets", reason="datasets is not installed")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of the other library
]

FAMILIES = ("qwen2_5_vl", "qwen3_vl", "idefics3", "llava")
PICTURES = [picture(seed) for seed in range(6)]
EMPTY = {"type": "image", "text": None}


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def talk(count: int) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": f"What is {count}?"},
        {"role": "assistant", "content": "A cat." * count},
        {"role": "user", "content": "More."},
        {"role": "assistant", "content": "No."},
    ]


COLUMNS = [{"messages": talk(n), "images": PICTURES[: 1 + n % 2]} for n in range(1, 4)]
SINGLE = [{"messages": talk(n), "image": PICTURES[n]} for n in range(1, 4)]
MIXED = [*COLUMNS, {"messages": talk(2), "images": []}]
BLOCKS = [
    {
        "messages": [
            {"role": "user", "content": [text("one"), EMPTY, text("two"), EMPTY]},
            {"role": "assistant", "content": [text("yes" * (n + 1))]},
            {"role": "user", "content": [EMPTY, text("And this?")]},
            {"role": "assistant", "content": [text("no")]},
        ],
        "images": PICTURES[n : n + 3],
    }
    for n in range(3)
]
COMPLETIONS = [
    {"prompt": talk(n)[:1], "completion": talk(n)[1:2], "images": PICTURES[: 1 + n % 2]}
    for n in range(1, 4)
]
STEPS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "one image a row": (SINGLE, {}),
    "some rows without images": (MIXED, {}),
    "blocks in several messages": (BLOCKS, {}),
    "completions": (COMPLETIONS, {}),
    "whole prompts": (COMPLETIONS, {"completion_only_loss": False}),
    "dft": (COMPLETIONS, {"loss_type": "dft"}),
}


def tiny(family: str) -> tuple[Any, Any]:
    """A model and its processor; TRL needs a template of its own for LLaVA."""
    model, processor = tiny_vlm(family)
    if family == "llava":
        (path,) = [path for path in template_files() if path.stem == "llava_next"]
        template = path.read_text(encoding="utf-8")
        processor.chat_template = template.replace("</s>", processor.tokenizer.eos_token)
    return model, processor


@pytest.mark.parametrize("name", sorted(STEPS))
@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_is_the_same_step(tmp_path: Path, family: str, name: str) -> None:
    rows, options = STEPS[name]
    common = {"max_steps": 1, "learning_rate": 1e-2, "per_device_train_batch_size": 8} | options
    other = trl_trainer(tmp_path, *tiny(family), rows, **common)
    other.train()
    theirs = other.state.log_history[0]
    model, processor = tiny(family)
    args = SFTConfig(output_dir=str(tmp_path / "corral"), **common)
    own = SFTTrainer(model, args, rows, processing_class=processor)
    own.train()
    ours = own.state.log_history[0]
    for key in ("loss", "grad_norm", "entropy", "mean_token_accuracy"):
        assert ours[key] == pytest.approx(theirs[key], rel=1e-5, abs=1e-7), key
    assert ours["num_tokens"] == theirs["num_tokens"]
    pairs = zip(own.model.parameters(), other.model.parameters(), strict=True)
    # The first step of Adam moves each weight by the learning rate, in the gradient's direction.
    moved = [(one - two).abs() > 1e-4 for one, two in pairs]
    share = torch.cat([part.flatten() for part in moved]).float().mean()
    assert share < 1e-3, f"{float(share):.1%} of the weights moved otherwise"


@pytest.mark.parametrize("family", FAMILIES[:3])
def test_assistant_turns_are_trained_as_trl_trains_them_but_for_template_space(
    tmp_path: Path, family: str
) -> None:
    model, processor = tiny(family)
    options = {"assistant_only_loss": True, "max_length": None}
    collate = trl_trainer(tmp_path, model, processor, COLUMNS, **options).data_collator
    encoder = RowEncoder(processor, model, SFTConfig(**options))
    for row in [*COLUMNS, *BLOCKS]:
        theirs = collate([deepcopy(row)])
        own = encoder.encode(row)
        assert list(own.ids) == theirs["input_ids"][0].tolist()
        pairs = list(zip(own.labels, theirs["labels"][0].tolist(), strict=True))
        assert not [ours for ours, other in pairs if ours != IGNORED and ours != other]
        only_theirs = [other for ours, other in pairs if ours != other]
        assert {processor.tokenizer.decode([token]) for token in only_theirs} <= {"\n"}
        assert sum(label != IGNORED for label in own.labels) > 4


@pytest.mark.parametrize(
    "options",
    [{"packing": True}, {"padding_free": True}, {"truncation_mode": "keep_end"}],
    ids=lambda options: next(iter(options)),
)
def test_what_trl_refuses_beside_images_is_refused(tmp_path: Path, options: Any) -> None:
    model, processor = tiny("llava")
    with pytest.raises(ValueError, match="vision datasets"):
        trl_trainer(tmp_path, model, processor, SINGLE, **options)
    args = SFTConfig(output_dir=str(tmp_path / "corral"), **options)
    with pytest.raises(UsageError, match="images"):
        SFTTrainer(model, args, SINGLE, processing_class=processor)
