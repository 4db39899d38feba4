"""Configurations are read by what reads dataclasses: parsers, asdict, replace."""

import dataclasses
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from transformers import HfArgumentParser

from corral import GRPOConfig, SFTConfig, UsageError
from corral.training.foreign import Reading
from support.foreign_values import other_than

KINDS = [GRPOConfig, SFTConfig]


@cache
def parser_of(kind: Any) -> HfArgumentParser:
    return HfArgumentParser(kind)


def parsed(kind: Any, *arguments: str) -> Any:
    (config,) = parser_of(kind).parse_args_into_dataclasses(
        list(arguments), look_for_args_file=False
    )
    return config


@pytest.mark.parametrize("kind", KINDS)
def test_without_arguments_a_configuration_has_its_defaults(
    kind: type[GRPOConfig], caplog: pytest.LogCaptureFixture
) -> None:
    assert parsed(kind) == kind()
    assert parsed(kind).to_dict() == kind().to_dict()
    assert not caplog.records


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--learning_rate", "1e-5"], "learning_rate", 1e-5),
        (["--learning-rate", "1e-5"], "learning_rate", 1e-5),
        (["--max_steps", "7"], "max_steps", 7),
        (["--max_tool_calling_iterations", "3"], "max_tool_calling_iterations", 3),
        (["--output_dir", "runs/x"], "output_dir", "runs/x"),
        (["--loss_type", "grpo"], "loss_type", "grpo"),
        (["--scale_rewards", "none"], "scale_rewards", "none"),
        (["--log_completions"], "log_completions", True),
        (["--no_disable_dropout"], "disable_dropout", False),
        (["--disable_dropout", "false"], "disable_dropout", False),
        (["--bf16"], "bf16", True),
        (["--gradient_checkpointing", "false"], "gradient_checkpointing", False),
        (["--activation_checkpointing"], "gradient_checkpointing", True),
        (["--report_to", "none"], "report_to", []),
        (["--report_to", "wandb", "tensorboard"], "report_to", ["wandb", "tensorboard"]),
        (["--reward_weights", "1", "0.5"], "reward_weights", [1.0, 0.5]),
        (
            ["--model_init_kwargs", '{"dtype": "bfloat16"}'],
            "model_init_kwargs",
            {"dtype": "bfloat16"},
        ),
        (["--generation_kwargs", '{"top_k": 5}'], "top_k", 5),
        (["--vllm_importance_sampling_cap", "5"], "importance_sampling_clip_max", 5.0),
        (["--trackio_static_space_id", "me/space"], "trackio_static_space_id", "me/space"),
        (["--dataloader_num_workers", "4"], "dataloader_num_workers", 4),
        (["--router_aux_loss_coef", "0.0"], "router_aux_loss_coef", 0.0),
        (["--fsdp", ""], "fsdp", ""),
        (["--tf32", "False"], "tf32", False),
        (["--use_vllm", "false"], "use_vllm", False),
    ],
    ids=str,
)
def test_an_argument_is_the_setting_of_that_name(
    arguments: list[str], name: str, value: Any
) -> None:
    assert getattr(parsed(GRPOConfig, *arguments), name) == value


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_refused_is_refused_for_its_reason(kind: type[GRPOConfig]) -> None:
    for name, setting in kind.FOREIGN.items():
        if setting.reading is not Reading.REFUSED:
            continue
        is_number = type(setting.default) in (int, float)
        value = 7 if is_number else other_than(setting)
        if type(setting.default) is bool and type(value) is not bool:
            continue  # true and false are both fine
        with pytest.raises(UsageError) as caught:
            parsed(kind, f"--{name}", str(value))
        assert setting.reason in str(caught.value)
        assert setting.instead in str(caught.value)


def test_a_wrong_value_is_told_as_in_python() -> None:
    with pytest.raises(UsageError, match=r"scale_rewards='all' should be 'group', 'batch' or"):
        parsed(GRPOConfig, "--scale_rewards", "all")


def test_a_json_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"output_dir": "runs/x", "max_steps": 3, "use_vllm": False}))
    (config,) = parser_of(GRPOConfig).parse_json_file(str(path))
    assert (config.output_dir, config.max_steps) == ("runs/x", 3)


def test_replace_and_asdict_work() -> None:
    settings: dict[str, Any] = {"output_dir": "runs/x", "beta": 0.1, "dataloader_num_workers": 4}
    config = GRPOConfig(**settings)
    assert dataclasses.replace(config, max_steps=3) == GRPOConfig(**settings, max_steps=3)
    shown = dataclasses.asdict(config)
    assert (shown["beta"], shown["dataloader_num_workers"], shown["vllm_mode"]) == (
        0.1,
        4,
        "colocate",
    )


class Mine(GRPOConfig):
    dataset: str = dataclasses.field(default="tasks", metadata={"help": "What to play."})
    sizes: list[int] = dataclasses.field(default_factory=list)


def test_a_subclass_has_its_own_fields_and_no_others() -> None:
    assert set(Mine.model_fields) - set(GRPOConfig.model_fields) == {"dataset", "sizes"}
    config = parsed(Mine, "--dataset", "more", "--sizes", "1", "2", "--max_steps", "3")
    assert (config.dataset, config.sizes, config.max_steps) == ("more", [1, 2], 3)
    assert Mine.model_validate_json(config.model_dump_json()) == config


def test_a_subclass_is_told_to_be_no_dataclass() -> None:
    with pytest.raises(UsageError, match="Yours: leave @dataclass out"):

        @dataclasses.dataclass
        class Yours(GRPOConfig):
            dataset: str = "tasks"
