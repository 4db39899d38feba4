"""Supervised fine-tuning against TRL's: the same tokens, the same labels, the same step."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from corral import SFTConfig, SFTTrainer
from corral.training.token_rows import IGNORED, RowEncoder
from support.adder import TOOLS
from support.tiny_models import tiny_model, tiny_tokenizer
from support.trl_sft import trl_trainer
from support.trl_templates import dressed, template_files

pytest.importorskip("trl", reason="trl is not installed")
pytest.importorskip("datasets", reason="datasets is not installed")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of the other library
]

TEMPLATES = {path.stem: path for path in template_files()}
TOOL_TEMPLATES = ["glm4moe", "lfm2_v2", "qwen2_5", "qwen3"]
PLAIN_TEMPLATES = [*TOOL_TEMPLATES, "llama3"]


def call(a: int, b: int) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "add", "arguments": {"a": a, "b": b}}}


def talk(a: int, b: int, content: str = "") -> dict[str, Any]:
    return {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": f"{a} + {b}, ünd {b} + {a}?"},
            {"role": "assistant", "content": content, "tool_calls": [call(a, b)]},
            {"role": "tool", "name": "add", "content": str(a + b)},
            {"role": "assistant", "content": "", "tool_calls": [call(b, a)]},
            {"role": "tool", "name": "add", "content": f"{a + b}\n"},
            {"role": "assistant", "content": f"It is {a + b}."},
        ],
        "tools": json.dumps(TOOLS),
    }


TALKS = [talk(1, 2), talk(33, 4, "Let me see.")]
PLAIN = [
    {
        "messages": [
            {"role": "user", "content": "Hi ü"},
            {"role": "assistant", "content": "Hello there."},
            {"role": "user", "content": "  More\n"},
            {"role": "assistant", "content": "No."},
        ]
    },
]


def template_tokenizer(data: Path, name: str) -> tuple[Any, Any]:
    tokenizer, more = dressed(data / "tokenizers" / "qwen3", TEMPLATES[name])
    model = tiny_model(tokenizer)
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, *more]
    return tokenizer, model


@pytest.mark.parametrize("name", sorted(PLAIN_TEMPLATES))
def test_whole_conversations_are_the_same_ids_and_labels(
    tmp_path: Path, test_data: Path, name: str
) -> None:
    tokenizer, model = template_tokenizer(test_data, name)
    encoder = RowEncoder(tokenizer, model, SFTConfig())
    for rows in [PLAIN, *([TALKS] if name in TOOL_TEMPLATES else [])]:
        theirs = trl_trainer(tmp_path, model, tokenizer, rows).train_dataset
        for row, their in zip(rows, theirs, strict=True):
            own = encoder.encode(row)
            assert list(own.ids) == their["input_ids"]
            assert own.labels == their["labels"]


@pytest.mark.parametrize("name", sorted(PLAIN_TEMPLATES))
def test_assistant_turns_are_trained_as_trl_trains_them_but_for_template_space(
    tmp_path: Path, test_data: Path, name: str
) -> None:
    """TRL's training templates also train white space that a model never samples: the line break
    that some write behind the stop token, and one of the generation prompt of Qwen2.5."""
    tokenizer, model = template_tokenizer(test_data, name)
    options = {"assistant_only_loss": True}
    encoder = RowEncoder(tokenizer, model, SFTConfig(**options))
    for rows in [PLAIN, *([TALKS] if name in TOOL_TEMPLATES else [])]:
        theirs = trl_trainer(tmp_path, model, tokenizer, rows, **options).train_dataset
        for row, their in zip(rows, theirs, strict=True):
            own = encoder.encode(row)
            assert list(own.ids) == their["input_ids"]
            pairs = list(zip(own.labels, their["labels"], strict=True))
            assert not [ours for ours, other in pairs if ours != IGNORED and ours != other]
            only_theirs = [other for ours, other in pairs if ours != other]
            assert {tokenizer.decode([token]) for token in only_theirs} <= {"\n"}
            if name in ("glm4moe", "llama3"):
                assert own.labels == their["labels"]


PROMPTS = [
    {"prompt": f"What is {n}?", "completion": f"It is {n}, I think." + " Yes." * n}
    for n in range(4)
]
TEXTS = [{"text": "Once there was a number. " * n} for n in range(1, 5)]
CHATS = [
    {
        "prompt": [{"role": "user", "content": "Add."}],
        "completion": talk(n, 7)["messages"][2:],
        "tools": json.dumps(TOOLS),
    }
    for n in range(4)
]
MANY = [talk(a, b) for a in range(2) for b in range(2)]
STEPS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "conversations": (MANY, {}),
    "prompts and completions": (PROMPTS, {}),
    "whole prompts": (PROMPTS, {"completion_only_loss": False}),
    "completions of messages": (CHATS, {}),
    "text": (TEXTS, {}),
    "dft": (TEXTS, {"loss_type": "dft"}),
    "cut": (TEXTS, {"max_length": 60}),
    "the end kept": (TEXTS, {"max_length": 60, "truncation_mode": "keep_end"}),
    "packed": (TEXTS, {"packing": True, "max_length": 130}),
    "packed and split": (
        TEXTS,
        {"packing": True, "max_length": 48, "packing_strategy": "bfd_split"},
    ),
    "wrapped": (TEXTS, {"packing": True, "max_length": 64, "packing_strategy": "wrapped"}),
    "experts as their model weighs them": (TEXTS, {}),
    "experts": (MANY, {"router_aux_loss_coef": 0.5}),
}


@pytest.mark.parametrize("name", sorted(STEPS))
def test_a_step_is_the_same_step(tmp_path: Path, name: str) -> None:
    rows, options = STEPS[name]
    tokenizer = tiny_tokenizer()
    common = {"max_steps": 1, "learning_rate": 1e-2, "per_device_train_batch_size": 16} | options
    family = "qwen3_moe" if "experts" in name else "llama"
    model = tiny_model(tokenizer, family=family)
    model.set_attn_implementation("eager" if "packing" not in options else "sdpa")
    other = trl_trainer(tmp_path, model, tokenizer, rows, **common)
    other.train()
    theirs = other.state.log_history[0]
    args = SFTConfig(output_dir=str(tmp_path / "corral"), **common)
    own = SFTTrainer(tiny_model(tokenizer, family=family), args, rows, processing_class=tokenizer)
    own.train()
    ours = own.state.log_history[0]
    balance = ["aux_loss"] if "experts" in name else []
    for key in ("loss", "grad_norm", "entropy", "mean_token_accuracy", *balance):
        assert ours[key] == pytest.approx(theirs[key], rel=1e-5, abs=1e-7), key
    assert ours["num_tokens"] == theirs["num_tokens"]
    pairs = zip(own.model.parameters(), other.model.parameters(), strict=True)
    # The first step of Adam moves each weight by the learning rate, in the gradient's direction.
    moved = [(one - two).abs() > 1e-4 for one, two in pairs]
    share = torch.cat([part.flatten() for part in moved]).float().mean()
    assert share < 1e-3, f"{float(share):.1%} of the weights moved otherwise"
