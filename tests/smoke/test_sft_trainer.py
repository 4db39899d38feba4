"""Three steps of each path through the SFT trainer, on a tiny random model."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig

from corral import SFTConfig, SFTTrainer, UsageError
from corral.env import prepare
from support.tiny_models import tiny_model, tiny_tokenizer
from support.toy_tokenizers import byte_level_tokenizer

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch.*")


class Adder:
    def reset(self, **kwargs: Any) -> None:
        pass

    def add(self, a: int, b: int) -> int:
        """Add two numbers.

        Args:
            a: One number.
            b: The other.
        """
        return a + b


TOOLS = list(prepare(Adder).tools.schemas)


def talk(a: int, b: int) -> dict[str, Any]:
    call = {"type": "function", "function": {"name": "add", "arguments": {"a": a, "b": b}}}
    return {
        "messages": [
            {"role": "user", "content": f"{a} + {b}?"},
            {
                "role": "assistant",
                "content": "",
                "reasoning_content": "A sum.",
                "tool_calls": [call],
            },
            {"role": "tool", "name": "add", "content": str(a + b)},
            {"role": "assistant", "content": f"It is {a + b}."},
        ],
        "tools": TOOLS,
    }


TALKS = [talk(a, b) for a in range(3) for b in range(3)]


def trainer(tmp_path: Path, model: Any, rows: Any = TALKS, **options: Any) -> SFTTrainer:
    names = ("peft_config", "processing_class")
    known = {name: options.pop(name) for name in names if name in options}
    settings = {"max_steps": 3, "per_device_train_batch_size": 4, "learning_rate": 1e-3}
    args = SFTConfig(output_dir=str(tmp_path / "run"), **(settings | options))
    return SFTTrainer(model, args, rows, **known)


def weights(model: Any) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten().clone() for parameter in model.parameters()])


PATHS: dict[str, dict[str, Any]] = {
    "plain": {},
    "bf16": {"bf16": True},
    "gradient checkpointing": {"gradient_checkpointing": True},
    "packing": {"packing": True, "token_budget": 1500},
    "accumulation": {"gradient_accumulation_steps": 2, "token_budget": 1},
    "cut": {"max_length": 700},
}


@pytest.mark.parametrize("path", sorted(PATHS))
def test_a_path_trains(tmp_path: Path, model_folder: Path, path: str) -> None:
    made = trainer(tmp_path, str(model_folder), **PATHS[path])
    before = weights(made.model)
    output = made.train()
    assert output.global_step == 3
    assert (weights(made.model) - before).abs().max() > 1e-4
    lines = (made.run_folder.path / "metrics.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    assert [entry["step"] for entry in entries] == [1, 2, 3]
    # A random model finds each of 258 tokens as likely as any other.
    assert 4 < entries[0]["metrics"]["loss"] < 8


def test_an_adapter_is_all_that_an_adapter_run_changes(tmp_path: Path, model_folder: Path) -> None:
    config = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    made = trainer(tmp_path, str(model_folder), peft_config=config, gradient_checkpointing=True)
    before = {name: value.clone() for name, value in made.model.state_dict().items()}
    made.train()
    changed = {n for n, v in made.model.state_dict().items() if not torch.equal(v, before[n])}
    assert changed
    assert all("lora_" in name for name in changed)


def test_packing_and_cut_do_not_change_what_is_learned(tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer()
    found = [
        trainer(
            tmp_path / str(index), tiny_model(tokenizer).double(), processing_class=tokenizer, **how
        )
        for index, how in enumerate([{}, {"packing": True}, {"token_budget": 1}])
    ]
    numbers = [[made.train().training_loss, *made.state.log_history] for made in found]
    for other in numbers[1:]:
        assert other[0] == pytest.approx(numbers[0][0], rel=1e-6)
        assert other[1]["grad_norm"] == pytest.approx(numbers[0][1]["grad_norm"], rel=1e-6)


def test_prompts_with_completions_need_no_tools(tmp_path: Path) -> None:
    plain = byte_level_tokenizer()
    rows = [{"prompt": "Say hi.", "completion": "Hi."}, {"prompt": "Again.", "completion": "Hi!"}]
    made = trainer(tmp_path, tiny_model(plain), rows, processing_class=plain)
    assert made.train().global_step == 3


def test_a_run_continues_where_it_was_saved(tmp_path: Path, model_folder: Path) -> None:
    options: dict[str, Any] = {"max_steps": 6, "save_steps": 2, "lr_scheduler_type": "cosine"}
    whole = trainer(tmp_path / "whole", str(model_folder), **options)
    whole.train()
    first = trainer(tmp_path / "parts", str(model_folder), **options)
    first.state.max_steps = 4
    first.train()
    second = trainer(tmp_path / "parts", str(model_folder), **options)
    second.train(resume_from_checkpoint=True)
    assert torch.equal(weights(second.model), weights(whole.model))
    losses = [entry["loss"] for entry in second.state.log_history]
    assert losses == [entry["loss"] for entry in whole.state.log_history[4:]]


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "train_dataset has no rows"),
        (None, "train_dataset is a NoneType: give a list of dicts"),
        ([{"text": "Hi."}], r"columns \['text'\] can't be learned from: give 'messages'"),
        ([{"messages": [{"role": "user", "content": "Hi."}]}], "without an assistant message"),
        (["Hi."], r"train_dataset\[0\] is 'Hi.': each row must be a mapping"),
    ],
)
def test_data_that_cannot_be_learned_from_is_told(
    tmp_path: Path, model_folder: Path, rows: Any, text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        trainer(tmp_path, str(model_folder), rows)


def test_a_cut_before_the_first_answer_is_told(tmp_path: Path, model_folder: Path) -> None:
    with pytest.raises(UsageError, match=r"first 20 tokens of a conversation .* raise max_length"):
        trainer(tmp_path, str(model_folder), max_length=20)
