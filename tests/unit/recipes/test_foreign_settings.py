"""Settings of TRL in a recipe are answered as in Python."""

from typing import Any

import pytest

from corral import GRPOConfig, SFTConfig, UsageError
from corral.config import load
from corral.recipes.recipe import Recipe
from corral.training.foreign import Reading
from support.foreign_values import other_than

KINDS = {"grpo": GRPOConfig, "sft": SFTConfig}
REFUSED = [
    (stage, name)
    for stage, kind in KINDS.items()
    for name, setting in kind.FOREIGN.items()
    if setting.reading is Reading.REFUSED
]


def loaded(stage: str, settings: dict[str, Any], *overrides: str) -> Any:
    data = {"name": "x", "model": "tiny", "environment": "echo", stage: {"train": settings}}
    return load(data, overrides, Recipe)


@pytest.mark.parametrize(("stage", "name"), REFUSED)
def test_what_is_refused_is_refused_for_the_same_reason(stage: str, name: str) -> None:
    value = other_than(KINDS[stage].FOREIGN[name])
    with pytest.raises(UsageError) as in_python:
        KINDS[stage](**{name: value})
    with pytest.raises(UsageError) as in_a_recipe:
        loaded(stage, {name: value})
    _, _, why = str(in_python.value).partition(": ")
    assert str(in_a_recipe.value) == f"{stage}.train: {why}"
    setting = KINDS[stage].FOREIGN[name]
    assert setting.reason in why
    assert setting.instead.rstrip(".") in why


def test_what_changes_nothing_is_accepted_and_told(caplog: pytest.LogCaptureFixture) -> None:
    resolved = loaded("grpo", {"fp16": False, "max_steps": 3}, "grpo.train.vllm_mode=server")
    assert resolved.value.grpo.train.max_steps == 3
    assert "Without effect: vllm_mode='server'" in caplog.text
    assert "fp16" not in caplog.text
    assert "vllm_mode" not in " ".join(resolved.origins)


def test_another_name_of_a_field_is_the_field_wherever_it_is_given() -> None:
    name, other = "importance_sampling_clip_max", "vllm_importance_sampling_cap"
    for settings, overrides, value, origin in [
        ({other: 5.0}, [], 5.0, "recipe"),
        ({other: 5.0}, [f"grpo.train.{name}=6"], 6.0, "--set"),
        ({name: 5.0}, [f"grpo.train.{other}=7"], 7.0, "--set"),
    ]:
        resolved = loaded("grpo", settings, *overrides)
        assert getattr(resolved.value.grpo.train, name) == value
        assert resolved.origins[f"grpo.train.{name}"] == origin
    with pytest.raises(UsageError, match=f"grpo.train.{name} and {other} are one setting"):
        loaded("grpo", {name: 5.0, other: 5.0})


def test_a_name_that_is_nearly_one_of_trls_is_told_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"'grpo.train.vllm_mod'. Did you mean grpo.train.vllm_mo"):
        loaded("grpo", {"vllm_mod": "server"})
