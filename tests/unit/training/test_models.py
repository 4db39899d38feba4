import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig
from torch import nn

from corral.errors import UsageError
from corral.training.learner import Learner
from corral.training.models import (
    disable_dropout,
    load_model,
    load_tokenizer,
    stop_ids_of,
    with_adapter,
)
from corral.training.optimization import OptimizationConfig
from support.tiny_models import save_tiny_model, tiny_model, tiny_tokenizer
from support.toy_tokenizers import byte_level_tokenizer

LORA = LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("model"), num_hidden_layers=1)


@pytest.mark.report("P057")
def test_weights_load_in_float32_unless_told_otherwise(folder: Path) -> None:
    assert load_model(folder, {}).dtype == torch.float32
    assert load_model(str(folder), {"dtype": "bfloat16"}).dtype == torch.bfloat16
    assert load_model(folder, {"dtype": torch.float16}).dtype == torch.float16


def test_objects_are_taken_as_they_are() -> None:
    tokenizer = tiny_tokenizer()
    model = tiny_model(tokenizer)
    assert load_model(model, {}) is model
    assert load_tokenizer(model, tokenizer) is tokenizer


def test_a_tokenizer_is_found_beside_the_model_and_pads_with_eos(folder: Path) -> None:
    assert load_tokenizer(folder, None).chat_template
    bare = byte_level_tokenizer()
    bare.pad_token = None
    assert load_tokenizer(folder, bare).pad_token == "<|im_end|>"


def damaged(folder: Path) -> Path:
    save_tiny_model(folder, num_hidden_layers=1)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    return folder


def nonsense(folder: Path) -> Path:
    (folder / "config.json").write_text("{")
    return folder


def unknown(folder: Path) -> Path:
    (folder / "config.json").write_text('{"model_type": "nobody"}')
    return folder


@pytest.mark.parametrize("make", [damaged, nonsense, unknown, lambda folder: folder])
def test_a_folder_that_does_not_load_is_one_clear_sentence(tmp_path: Path, make: Any) -> None:
    with pytest.raises(UsageError) as raised:
        load_model(make(tmp_path), {})
    assert str(raised.value).startswith(f"model={str(tmp_path)!r} is ")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("./missing", "model='./missing' does not exist. Give a folder that save_pretrained wrote"),
        ("owner/missing", "model='owner/missing' is neither a folder with a model nor a hub id"),
    ],
)
def test_a_name_that_leads_nowhere_is_told(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UsageError) as raised:
        load_model(name, {})
    assert str(raised.value).startswith(text)
    assert "\n" not in str(raised.value)


def test_settings_that_come_too_late_or_make_no_sense_are_told(folder: Path) -> None:
    model = tiny_model(tiny_tokenizer())
    with pytest.raises(UsageError, match="model that is already loaded"):
        load_model(model, {"dtype": "float32"})
    with pytest.raises(UsageError, match="dtype='float31' is no type of torch"):
        load_model(folder, {"dtype": "float31"})
    with pytest.raises(UsageError, match="pass processing_class=tokenizer"):
        load_tokenizer(model, None)


def test_an_adapter_is_the_same_for_the_same_seed() -> None:
    def adapter(seed: int) -> torch.Tensor:
        model = with_adapter(tiny_model(tiny_tokenizer()), LORA, seed)
        return next(p for name, p in model.named_parameters() if "lora_A" in name)

    before = torch.get_rng_state()
    first = adapter(1)
    torch.rand(3)
    assert torch.equal(adapter(1), first)
    assert not torch.equal(adapter(2), first)
    torch.set_rng_state(before)


def test_what_is_no_adapter_configuration_is_told() -> None:
    model = tiny_model(tiny_tokenizer())
    assert with_adapter(model, None, 0) is model
    with pytest.raises(UsageError, match=r"peft_config is a dict: give a peft\.LoraConfig"):
        with_adapter(model, {"r": 2}, 0)
    with pytest.raises(UsageError, match="has an adapter already"):
        with_adapter(with_adapter(model, LORA, 0), LORA, 0)


@pytest.mark.parametrize(("ids", "expected"), [(None, set()), (7, {7}), ([7, 8], {7, 8})])
@pytest.mark.report("P039")
def test_all_ends_of_a_generation_config_stop(ids: Any, expected: set[int]) -> None:
    model = tiny_model(tiny_tokenizer())
    model.generation_config.eos_token_id = ids
    assert stop_ids_of(model) == expected
    assert stop_ids_of(nn.Linear(1, 1)) == frozenset()


def test_dropout_is_turned_off_everywhere() -> None:
    model = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.Dropout(0.5)))
    disable_dropout(model)
    assert model[1][0].p == 0.0


def test_checkpointing_is_switched_on_by_the_name_that_stays() -> None:
    model = tiny_model(tiny_tokenizer())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Learner(model, OptimizationConfig(gradient_checkpointing=True, use_cpu=True))
    assert model.is_gradient_checkpointing
