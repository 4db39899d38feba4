"""Every setting of TRL 1.16 is known; it has TRL's default, or a reason is written down here."""

import dataclasses
import enum
from typing import Any

import pytest

from corral import GRPOConfig, SFTConfig

trl = pytest.importorskip("trl", reason="TRL is not installed")

SAME = "the same thing, without a None to look for"
COMMON = {
    "model_init_kwargs": SAME,
    "lr_scheduler_kwargs": SAME,
    "gradient_checkpointing_kwargs": SAME,
    "activation_checkpointing_kwargs": SAME,
    # bf16 is None in both until a device is known; TRL then turns it on for CPUs too.
    "gradient_checkpointing": "on for GPUs; off for CPUs, which have the memory",
    "logging_steps": "a step of RL takes long enough to be logged",
    "save_total_limit": "checkpoints with their optimiser fill a disk within a night",
    "report_to": "no tracker is an empty list",
}
DIFFERENT = {
    GRPOConfig: COMMON
    | {
        "chat_template_kwargs": SAME,
        "generation_kwargs": SAME,
        "disable_dropout": "else the policy that plays is not the one that is trained",
    },
    SFTConfig: COMMON,
}
"""Reasons by setting."""

PAIRS = [(GRPOConfig, trl.GRPOConfig), (SFTConfig, trl.SFTConfig)]


def _default(field: dataclasses.Field[Any]) -> Any:
    value = field.default
    if field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    return value.value if isinstance(value, enum.Enum) else value


@pytest.mark.contract(2)
@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_every_setting_of_trl_is_a_field_or_has_a_reason_why_not(
    ours: type[GRPOConfig], theirs: Any
) -> None:
    known = {*ours.model_fields, *ours.OTHER_NAMES, *ours.FOREIGN}
    assert {field.name for field in dataclasses.fields(theirs)} - known == set()


@pytest.mark.contract(2)
@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_defaults_are_those_of_trl_but_for_written_reasons(
    ours: type[GRPOConfig], theirs: Any
) -> None:
    config = ours()
    other = {
        field.name: (getattr(config, field.name), _default(field))
        for field in dataclasses.fields(theirs)
        if getattr(config, field.name) != _default(field)
    }
    # Aliases of a field share its reason; TRL's deprecated ones are None where they are not used.
    deprecated = {"activation_checkpointing", "vllm_importance_sampling_cap"}
    assert set(other) - deprecated == set(DIFFERENT[ours]), other


@pytest.mark.contract(2)
@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_every_default_of_trl_may_be_given(ours: type[GRPOConfig], theirs: Any) -> None:
    for field in dataclasses.fields(theirs):
        ours(**{field.name: _default(field)})
