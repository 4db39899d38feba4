"""Three steps of each path through the SFT trainer, on a tiny random model."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig
from transformers import AutoTokenizer, TrainerCallback

from corral import SFTConfig, SFTTrainer, UsageError
from support.adder import TOOLS
from support.tiny_models import tiny_model, tiny_tokenizer

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch.*")


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
    names = ("peft_config", "processing_class", "eval_dataset", "formatting_func", "callbacks")
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
    "cut": {"max_length": 500},
    "assistant turns": {"assistant_only_loss": True},
    "dft": {"loss_type": "dft"},
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
    if path != "dft":
        assert 4 < entries[0]["metrics"]["loss"] < 8
    assert 0 < entries[0]["metrics"]["entropy"] < 6
    assert 0 <= entries[0]["metrics"]["mean_token_accuracy"] <= 1


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
        for index, how in enumerate([{}, {"padding_free": True}, {"token_budget": 1}])
    ]
    numbers = [[made.train().training_loss, *made.state.log_history] for made in found]
    for other in numbers[1:]:
        assert other[0] == pytest.approx(numbers[0][0], rel=1e-6)
        assert other[1]["grad_norm"] == pytest.approx(numbers[0][1]["grad_norm"], rel=1e-6)


def test_blocks_are_what_batch_sizes_count(tmp_path: Path, model_folder: Path) -> None:
    sizes = {"per_device_train_batch_size": 1, "max_steps": -1, "num_train_epochs": 1}
    longest = 2 * max(map(len_of, trainer(tmp_path / "a", str(model_folder)).batches.blocks))
    packed = trainer(tmp_path / "b", str(model_folder), packing=True, max_length=longest, **sizes)
    assert packed.state.max_steps == -(-len(TALKS) // 2)
    packed.train()
    entry = packed.state.log_history[0]
    assert longest / 2 < entry["num_tokens"] <= longest


@pytest.mark.report("P049")
def test_the_last_step_of_an_epoch_is_the_mean_of_what_is_left(tmp_path: Path) -> None:
    """Ten rows, one a micro-batch and four a step: the third step has two, and divides by two."""
    rows = [{"text": f"Row {'x' * (n * n)}."} for n in range(10)]
    tokenizer = tiny_tokenizer()

    def made(name: str, rows: Any, **options: Any) -> SFTTrainer:
        options |= {"learning_rate": 0.0, "train_sampling_strategy": "sequential"}
        options |= {"per_device_train_batch_size": 1, "token_budget": 1, "shuffle_dataset": False}
        model = tiny_model(tokenizer).double()
        return trainer(tmp_path / name, model, rows, processing_class=tokenizer, **options)

    whole = made("whole", rows, gradient_accumulation_steps=4, max_steps=3)
    alone = made("alone", rows[8:], gradient_accumulation_steps=2, max_steps=1)
    whole.train()
    alone.train()
    last, same = whole.state.log_history[2], alone.state.log_history[0]
    for name in ("loss", "grad_norm", "tokens/trainable"):
        assert last[name] == pytest.approx(same[name], rel=1e-6), name
    losses = [entry["loss"] for entry in whole.state.log_history[:3]]
    parts = [whole.evaluate(rows[start : start + 4])["eval_loss"] for start in (0, 4, 8)]
    assert losses == pytest.approx(parts, rel=1e-6)


def len_of(block: Any) -> int:
    return sum(len(row.ids) for row in block)


STORIES = [{"text": f"There were {n} trees. " * n} for n in range(1, 9)]


def test_evaluation_measures_rows_that_are_not_trained(tmp_path: Path, model_folder: Path) -> None:
    held_out = {"near": STORIES[:2], "far": [{"text": "zzzzzzzz"}]}
    made = trainer(
        tmp_path,
        str(model_folder),
        STORIES[2:],
        eval_dataset=held_out,
        eval_strategy="steps",
        eval_steps=2,
        eval_on_start=True,
        max_steps=4,
        learning_rate=1e-2,
    )
    made.train()
    entries = [entry for entry in made.state.log_history if "eval_near_loss" in entry]
    assert [entry["step"] for entry in entries] == [0, 2, 4]
    assert entries[-1]["eval_near_loss"] < entries[0]["eval_near_loss"] - 0.1
    assert entries[-1]["eval_far_loss"] > entries[-1]["eval_near_loss"]
    again = made.evaluate(held_out["near"])
    assert again["eval_loss"] == pytest.approx(entries[-1]["eval_near_loss"], rel=1e-6)


def test_an_evaluation_does_not_depend_on_how_it_is_batched(
    tmp_path: Path, model_folder: Path
) -> None:
    losses = []
    for index, budget in enumerate([1, 100_000]):
        made = trainer(
            tmp_path / str(index),
            str(model_folder),
            STORIES,
            eval_dataset=STORIES,
            token_budget=budget,
        )
        losses.append(made.evaluate()["eval_loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_callbacks_and_the_log_are_those_of_every_trainer(
    tmp_path: Path, model_folder: Path
) -> None:
    class Stop(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
            control.should_training_stop = state.global_step == 4
            return control

    made = trainer(
        tmp_path, str(model_folder), callbacks=[Stop], max_steps=9, logging_steps=2, save_steps=3
    )
    made.train()
    history = made.state.log_history
    assert [entry["step"] for entry in history if "loss" in entry] == [2, 4]
    assert "train_runtime" in history[-1]
    saved = sorted(p.name for p in (made.run_folder.checkpoints_path / "sft").iterdir())
    assert saved == ["checkpoint-3", "checkpoint-4"]


def test_a_stream_is_read_as_far_as_steps_need_it(tmp_path: Path, model_folder: Path) -> None:
    class Stream:
        read = 0

        def __iter__(self) -> Any:
            for story in STORIES:
                Stream.read += 1
                yield story

    options = {"per_device_train_batch_size": 2, "save_steps": 1}
    whole = trainer(tmp_path / "whole", str(model_folder), Stream(), max_steps=3, **options)
    assert Stream.read == 0
    whole.train()
    assert Stream.read == 6
    parts = trainer(tmp_path / "parts", str(model_folder), Stream(), max_steps=3, **options)
    parts.state.max_steps = 2
    parts.train()
    rest = trainer(tmp_path / "parts", str(model_folder), Stream(), max_steps=3, **options)
    rest.train(resume_from_checkpoint=True)
    assert torch.equal(weights(rest.model), weights(whole.model))
    with pytest.raises(UsageError, match="max_steps must be set: train_dataset is a stream"):
        trainer(tmp_path, str(model_folder), Stream(), max_steps=-1)


def test_rows_come_in_the_order_that_is_asked_for(tmp_path: Path, model_folder: Path) -> None:
    def orders(**options: Any) -> list[list[int]]:
        made = trainer(
            tmp_path, str(model_folder), STORIES, per_device_train_batch_size=8, **options
        )
        return [[len(block[0].ids) for block in made.batches.step(epoch)] for epoch in (0, 1)]

    first, second = orders(train_sampling_strategy="sequential")
    assert first == second == sorted(first)
    first, second = orders(train_sampling_strategy="sequential", shuffle_dataset=True)
    assert first == second != sorted(first)
    first, second = orders()
    assert sorted(first) == sorted(second)
    assert first != second


def test_the_eos_token_and_the_template_that_were_asked_for_are_saved(
    tmp_path: Path, model_folder: Path
) -> None:
    template = tmp_path / "chat.jinja"
    template.write_text(
        "{% for m in messages %}<|im_start|>{{ m.role }}: {{ m.content }}<|im_start|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant: {% endif %}"
    )
    rows = [{"messages": [{"role": "user", "content": "Hi"}]}]
    options = {"eos_token": "<|im_start|>", "chat_template_path": str(template)}
    made = trainer(tmp_path, str(model_folder), rows, **options)
    made.train()
    made.save_model(tmp_path / "saved")
    made.end()
    loaded = AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert loaded.eos_token == "<|im_start|>"
    assert "{{ m.role }}: " in loaded.chat_template
    stops = json.loads((tmp_path / "saved" / "generation_config.json").read_text())["eos_token_id"]
    assert stops[0] == loaded.eos_token_id
    with pytest.raises(UsageError, match="eos_token='<eos>' is no token of the tokenizer"):
        trainer(tmp_path, str(model_folder), rows, eos_token="<eos>")
    with pytest.raises(UsageError, match=r"chat_template_path='no.jinja' does not exist"):
        trainer(tmp_path, str(model_folder), rows, chat_template_path="no.jinja")


def test_data_may_be_a_file_and_rows_may_be_formatted(tmp_path: Path, model_folder: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"q": f"{n}?", "a": f"{n}!"}) + "\n" for n in range(5)))
    made = trainer(
        tmp_path, str(model_folder), path, formatting_func=lambda row: f"{row['q']} {row['a']}"
    )
    assert made.train().global_step == 3
    assert made.state.num_tokens == 4 * 6 + 1 * 6 + 4 * 6


@pytest.mark.report("P021")
def test_rows_without_a_token_to_learn_are_left_out_and_told(
    tmp_path: Path, model_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [{"prompt": "p" * length, "completion": "Yes."} for length in (5, 500, 700)]
    made = trainer(tmp_path, str(model_folder), rows, max_length=100)
    assert len(made.batches.blocks) == 1
    assert "2 rows have no token to learn within max_length=100" in caplog.text


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
    losses = [entry["loss"] for entry in second.state.log_history if "loss" in entry]
    assert losses == [entry["loss"] for entry in whole.state.log_history if "loss" in entry]


@pytest.mark.parametrize(
    ("rows", "options", "text"),
    [
        ([], {}, "train_dataset has no rows"),
        (None, {}, r"train_dataset is a NoneType\. Give a list of dicts"),
        ([{"note": "Hi."}], {}, r"Row 0: the columns \['note'\] can't be learned from"),
        (["Hi."], {}, r"train_dataset\[0\] is 'Hi.': each row must be a mapping"),
        (TALKS, {"max_length": 20, "assistant_only_loss": True}, r"first 20 tokens: raise max_len"),
        (TALKS, {"eval_strategy": "steps"}, "eval_strategy='steps' needs an eval_dataset"),
        (TALKS, {"packing": True, "max_length": None}, "packing=True needs max_length"),
        (
            TALKS,
            {"completion_only_loss": True, "formatting_func": str},
            "completion_only_loss=True with a formatting_func",
        ),
    ],
)
def test_what_cannot_be_learned_is_told(
    tmp_path: Path, model_folder: Path, rows: Any, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        trainer(tmp_path, str(model_folder), rows, **options)
