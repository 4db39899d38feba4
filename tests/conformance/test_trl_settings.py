"""Every setting of TRL 1.16 is known; it has TRL's default, or the docs give a reason."""

import ast
import dataclasses
import enum
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from corral import GRPOConfig, SFTConfig
from support.generated import page_of

trl = pytest.importorskip("trl", reason="TRL is not installed")

PAGE = "docs/coming-from-trl.md"
_ROW = re.compile(
    r"^\| `(?P<name>\w+)`(?P<grpo> \(GRPO\))? \| `(?P<theirs>.*?)` \| `(?P<ours>.*?)` \| .+ \|$",
    re.MULTILINE,
)
PAIRS = [(GRPOConfig, trl.GRPOConfig), (SFTConfig, trl.SFTConfig)]


def _default(field: dataclasses.Field[Any]) -> Any:
    value = field.default
    if field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    return value.value if isinstance(value, enum.Enum) else value


@pytest.mark.report("P166")
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
    # TRL's deprecated names are None where they are not used. {} is its None, for mappings.
    deprecated = {"activation_checkpointing", "vllm_importance_sampling_cap"}
    told = {name: pair for name, pair in other.items() if pair != ({}, None)}
    assert {name: told[name] for name in set(told) - deprecated} == _on_the_page(ours)


def _on_the_page(ours: type[GRPOConfig]) -> dict[str, tuple[Any, Any]]:
    """Our default and TRL's, by the settings that the page gives a reason for."""
    return {
        row["name"]: (ast.literal_eval(row["ours"]), ast.literal_eval(row["theirs"]))
        for row in _ROW.finditer(page_of(PAGE))
        if not (row["grpo"] and ours is SFTConfig)
    }


@pytest.mark.contract(2)
@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_every_default_of_trl_may_be_given(ours: type[GRPOConfig], theirs: Any) -> None:
    for field in dataclasses.fields(theirs):
        ours(**{field.name: _default(field)})


@pytest.mark.contract(2)
def test_trls_parser_reads_arguments_and_files(tmp_path: Path) -> None:
    settings = {"learning_rate": "1e-5", "vllm_importance_sampling_cap": 5.0, "use_vllm": False}
    settings |= {"report_to": "none", "model_init_kwargs": {"dtype": "bfloat16"}, "bf16": True}
    (tmp_path / "settings.yaml").write_text(yaml.safe_dump(settings))
    parser = trl.TrlParser((trl.ScriptArguments, GRPOConfig, trl.ModelConfig))
    arguments = ["--config", str(tmp_path / "settings.yaml"), "--dataset_name", "owner/data"]
    arguments += ["--model_name_or_path", "owner/model", "--max_steps", "3", "--log_completions"]
    script, config, model = parser.parse_args_and_config(arguments)
    assert (script.dataset_name, model.model_name_or_path) == ("owner/data", "owner/model")
    assert config == GRPOConfig(
        learning_rate=1e-5,
        importance_sampling_clip_max=5.0,
        model_init_kwargs={"dtype": "bfloat16"},
        bf16=True,
        max_steps=3,
        log_completions=True,
    )
