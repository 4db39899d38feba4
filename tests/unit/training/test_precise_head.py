"""Logits in float32 from models that compute in bfloat16."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

from corral import UsageError
from corral.training.precise_head import PreciseHead, make_head_precise
from support.tiny_models import tiny_model, tiny_tokenizer

IDS = torch.arange(40, 60)[None]
TIED, UNTIED = "llama", "qwen3"


def made(family: str, dtype: torch.dtype = torch.float32) -> Any:
    return tiny_model(tiny_tokenizer(), family=family).to(dtype).eval()


def hidden_and_logits(model: Any) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.no_grad():
        return model.model(input_ids=IDS).last_hidden_state, model(input_ids=IDS).logits


@pytest.mark.parametrize("family", [TIED, UNTIED])
def test_a_coarse_model_gives_the_logits_of_its_hidden_states_in_float32(family: str) -> None:
    plain = made(family, torch.bfloat16)
    before, coarse = hidden_and_logits(plain)
    model = copy.deepcopy(plain)
    make_head_precise(model)
    hidden, logits = hidden_and_logits(model)
    assert torch.equal(hidden, before)  # the rest computes as it did
    assert hidden.dtype is torch.bfloat16
    expected = before.float() @ plain.lm_head.weight.float().T
    assert torch.equal(logits, expected)
    assert not torch.equal(coarse.float(), expected)
    is_tied = model.lm_head.weight is model.model.embed_tokens.weight
    assert is_tied == (family == TIED)


@pytest.mark.parametrize("family", [TIED, UNTIED])
def test_autocast_does_not_reach_the_head(family: str) -> None:
    model = made(family)
    make_head_precise(model)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden, logits = hidden_and_logits(model)
    assert torch.equal(logits, hidden.float() @ model.lm_head.weight.T)


def test_the_head_is_trained_and_saved_as_before(tmp_path: Any) -> None:
    model = made(UNTIED)
    names = list(model.state_dict())
    weight = model.lm_head.weight
    make_head_precise(model)
    assert list(model.state_dict()) == names
    assert model.lm_head.weight is weight
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(input_ids=IDS).logits.sum().backward()
    assert weight.grad is not None
    assert weight.grad.dtype is torch.float32
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path)
    assert torch.equal(again.lm_head.weight, weight)


def test_a_copy_has_a_head_of_its_own() -> None:
    model = made(TIED, torch.bfloat16)
    make_head_precise(model)
    other = copy.deepcopy(model)
    before = hidden_and_logits(other)[1]
    with torch.no_grad():
        model.lm_head.weight.zero_()
    assert isinstance(other.lm_head, PreciseHead)
    assert torch.equal(hidden_and_logits(other)[1], before)


@pytest.mark.contract(3)
def test_a_head_with_an_adapter_is_refused() -> None:
    peft = pytest.importorskip("peft")
    adapted = peft.LoraConfig(r=2, target_modules=["q_proj", "lm_head"], task_type="CAUSAL_LM")
    with pytest.raises(UsageError, match=r"cast_lm_head_to_fp32=True .* Leave lm_head out"):
        make_head_precise(peft.get_peft_model(made(UNTIED), adapted))
    spared = peft.LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM")
    model: nn.Module = peft.get_peft_model(made(UNTIED), spared)
    make_head_precise(model)
    assert isinstance(model.get_base_model().lm_head, PreciseHead)  # type: ignore[operator]
