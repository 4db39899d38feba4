"""Training only the last blocks of a model: which weights move, and which must not."""

import pytest
import torch

from corral.errors import UsageError
from corral.training.models import train_last_blocks
from support.tiny_models import tiny_model, tiny_tokenizer


def trained_names(model: torch.nn.Module) -> set[str]:
    return {name for name, parameter in model.named_parameters() if parameter.requires_grad}


def test_only_the_last_blocks_are_trained() -> None:
    model = tiny_model(tiny_tokenizer(), num_hidden_layers=3)
    train_last_blocks(model, 2)
    names = trained_names(model)
    assert {name.split(".")[2] for name in names} == {"1", "2"}
    assert all(name.startswith("model.layers.") for name in names)
    assert "model.layers.1.mlp.up_proj.weight" in names


def test_weights_frozen_by_the_caller_stay_frozen() -> None:
    model = tiny_model(tiny_tokenizer())
    model.model.layers[1].mlp.requires_grad_(False)
    train_last_blocks(model, 1)
    assert trained_names(model)
    assert not any("mlp" in name for name in trained_names(model))


def test_more_blocks_than_there_are_is_an_error_that_says_how_many_there_are() -> None:
    with pytest.raises(UsageError, match="trained_blocks=3: LlamaForCausalLM has 2"):
        train_last_blocks(tiny_model(tiny_tokenizer()), 3)
