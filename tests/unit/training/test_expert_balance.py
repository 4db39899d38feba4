"""Which models have a balance loss, and how much it weighs."""

from typing import Any

import pytest
from peft import LoraConfig, get_peft_model

from corral import GRPOConfig, UsageError
from corral.training.expert_balance import ExpertBalance
from support.tiny_models import tiny_model, tiny_tokenizer


def model(family: str = "qwen3_moe", **config: Any) -> Any:
    made = tiny_model(tiny_tokenizer(), family=family)
    for name, value in config.items():
        setattr(made.config, name, value)
    return made


def test_the_weight_is_the_given_one_else_that_of_the_model() -> None:
    found = ExpertBalance.of(model(router_aux_loss_coef=0.25), None)
    assert found == ExpertBalance(weight=0.25, experts=4, chosen=2)
    assert ExpertBalance.of(model(), 0.5) == ExpertBalance(weight=0.5, experts=4, chosen=2)
    adapted = get_peft_model(model(), LoraConfig(r=2, target_modules=["q_proj"]))
    assert ExpertBalance.of(adapted, 0.5) == ExpertBalance(weight=0.5, experts=4, chosen=2)


def test_a_weight_of_nothing_and_a_model_without_experts_have_none() -> None:
    assert ExpertBalance.of(model(), 0.0) is None
    assert ExpertBalance.of(model(router_aux_loss_coef=0.0), None) is None
    assert ExpertBalance.of(model("llama"), None) is None
    assert ExpertBalance.of(model("llama"), 0.0) is None


@pytest.mark.contract(3)
def test_a_weight_for_experts_that_are_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match=r"router_aux_loss_coef=0.1 with a LlamaForCausalLM"):
        ExpertBalance.of(model("llama"), 0.1)
    with pytest.raises(UsageError, match="router_aux_loss_coef=-1"):
        GRPOConfig(router_aux_loss_coef=-1.0)
