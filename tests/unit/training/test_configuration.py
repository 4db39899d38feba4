"""What a configuration says about settings it can't use, and under which names it takes them."""

import copy
import logging
import pickle
import re
from enum import Enum
from typing import Any

import pytest

from corral import GRPOConfig, SFTConfig, UsageError
from corral.training.foreign import Reading
from support.foreign_values import other_than


@pytest.mark.parametrize("kind", [GRPOConfig, SFTConfig])
def test_what_changes_nothing_is_accepted_without_a_word(
    kind: type[GRPOConfig], caplog: pytest.LogCaptureFixture
) -> None:
    for name, setting in kind.FOREIGN.items():
        for value in (setting.default, *setting.harmless):
            assert getattr(kind(**{name: value}), name) == value
        if setting.reading is Reading.KEPT:
            assert getattr(kind(**{name: "anything"}), name) == "anything"
    assert not caplog.records


@pytest.mark.report("P166")
@pytest.mark.parametrize("kind", [GRPOConfig, SFTConfig])
def test_what_would_have_an_effect_elsewhere_is_refused_or_told(
    kind: type[GRPOConfig], caplog: pytest.LogCaptureFixture
) -> None:
    for name, setting in kind.FOREIGN.items():
        if setting.reading is Reading.KEPT:
            continue
        other = other_than(setting)
        caplog.clear()
        if setting.reading is Reading.NOTED:
            assert getattr(kind(**{name: other}), name) == other
            assert f"{name}={other!r}: {setting.reason}" in caplog.text
            continue
        told = f"{name}={other!r} is refused: {setting.reason}. {setting.instead}"
        assert setting.instead.endswith("."), name
        with pytest.raises(UsageError, match=re.escape(told)):
            kind(**{name: other})
        with pytest.raises(UsageError, match=re.escape(told)):
            setattr(kind(), name, other)


def test_a_setting_is_a_field_or_foreign_or_another_name_of_a_field() -> None:
    for kind in (GRPOConfig, SFTConfig):
        assert not set(kind.FOREIGN) & set(kind.model_fields)
        assert not set(kind.OTHER_NAMES) & (set(kind.model_fields) | set(kind.FOREIGN))
        assert set(kind.OTHER_NAMES.values()) <= set(kind.model_fields)


def test_a_foreign_setting_that_was_not_given_reads_as_its_default() -> None:
    config = GRPOConfig()
    assert (config.use_vllm, config.vllm_mode) == (False, "colocate")  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = config.nothing_like_it  # type: ignore[attr-defined]


def test_copies_remember_what_was_accepted() -> None:
    config = GRPOConfig(do_train=True)  # type: ignore[call-arg]
    for copied in (config.model_copy(), copy.deepcopy(config), pickle.loads(pickle.dumps(config))):
        assert copied.do_train


def test_another_name_of_a_field_is_the_field() -> None:
    values = {"correction": False, "mode": "token_mask", "max": 2.5, "min": 0.5, "cap": 2.0}
    values |= {"checkpointing": True, "kwargs": {"use_reentrant": True}}
    for name, field in GRPOConfig.OTHER_NAMES.items():
        value: Any = values[name.rpartition("_")[2]]
        config = GRPOConfig(**{name: value})
        assert getattr(config, field) == getattr(config, name) == value
        assigned = GRPOConfig()
        setattr(assigned, name, value)
        assert getattr(assigned, field) == value
        assert getattr(GRPOConfig(**{field: value, name: value}), field) == value
        with pytest.raises(UsageError, match="one setting: give one of them"):
            GRPOConfig(**{field: getattr(GRPOConfig(), field), name: value})


@pytest.mark.contract(1)
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"learning_rat": 1}, "there is no setting 'learning_rat'. Did you mean learning_rate?"),
        ({"use_vlm": True}, "there is no setting 'use_vlm'. Did you mean use_vllm?"),
        ({"evaluation_strategy": "no"}, "Did you mean eval_strategy?"),
        ({"zq": 1}, "there is no setting 'zq'. See the fields of the class"),
        ({"num_generations": 1}, "num_generations=1 should be greater than or equal to 2."),
        ({"temperature": "hot"}, "temperature='hot' should be a valid number"),
        ({"temperature": 0.0}, "temperature=0.0 should be greater than 0."),
        ({"loss_type": "ppo"}, "loss_type='ppo': choose one of bnpo, cispo"),
        ({"max_steps": 0}, "max_steps=0: give a positive number, or -1 to use epochs"),
        ({"scale_rewards": "all"}, "scale_rewards='all' should be 'group', 'batch' or 'none'."),
        ({"generation_batch_size": 8, "steps_per_generation": 2}, "are two ways .*: give one."),
        ({"fp16": True}, "fp16=True is refused: .* Set bf16=True, or leave both out."),
        ({"report_to": "mlflow"}, "report_to='mlflow': 'mlflow' is no tracker that Corral knows."),
        ({"log_completions_hub_repo": "a/b"}, "log_completions_hub_repo='a/b' needs log_compl"),
        ({"chat_template_kwargs": "{oops"}, "'{oops' is not JSON"),
        ({"model_init_kwargs": "[1]"}, r"model_init_kwargs=\[1\] should be a valid dictionary"),
        ({"generation_kwargs": {"num_beams": 2}}, "num_beams=2 is refused: the built-in engine"),
        ({"generation_kwargs": {"do_sample": False}}, "do_sample=False is refused"),
        ({"generation_kwargs": {"top_p": 3}}, "top_p=3 should be less than or equal to 1."),
        ({"importance_sampling_clip_min": 3.0}, "clip_min=3.0 must be less than .*clip_max=3.0"),
        (
            {"vllm_importance_sampling_mode": "token_truncate", "importance_sampling_clip_max": 0},
            "importance_sampling_clip_max=0 should be greater than 0.",
        ),
        (
            {"importance_sampling_mode": "token_truncate", "importance_sampling_clip_max": None},
            "'token_truncate' without .* has nothing to cut at",
        ),
    ],
)
def test_a_wrong_setting_is_told_in_a_sentence(options: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text) as raised:
        GRPOConfig(**options)
    lines = str(raised.value).splitlines()
    assert all(line.startswith("GRPOConfig: ") for line in lines)
    assert "pydantic" not in str(raised.value)


def test_every_wrong_setting_is_told_at_once() -> None:
    with pytest.raises(UsageError) as raised:
        SFTConfig(learning_rate=-1, max_length=0)
    assert str(raised.value).splitlines() == [
        "SFTConfig: learning_rate=-1 should be greater than or equal to 0.",
        "SFTConfig: max_length=0 should be greater than or equal to 1.",
    ]


def test_a_setting_that_is_assigned_is_checked_too() -> None:
    config = GRPOConfig()
    for name, value, text in (
        ("learning_rate", -1.0, "GRPOConfig: learning_rate=-1.0 should be greater"),
        ("learning_rat", 1.0, "Did you mean learning_rate?"),
        ("generation_kwargs", {"top_p": 0.5}, "frozen"),
    ):
        with pytest.raises(UsageError, match=text):
            setattr(config, name, value)


@pytest.mark.contract(5)
def test_mappings_may_be_json_text_and_none_is_an_empty_one() -> None:
    config = GRPOConfig(
        model_init_kwargs='{"dtype": "bfloat16"}',  # type: ignore[arg-type]
        chat_template_kwargs='{"enable_thinking": false}',  # type: ignore[arg-type]
        generation_kwargs='{"temperature": 0.5, "do_sample": true}',  # type: ignore[arg-type]
    )
    assert config.model_init_kwargs == {"dtype": "bfloat16"}
    assert config.chat_template_kwargs == {"enable_thinking": False}
    assert config.temperature == 0.5
    assert GRPOConfig(model_init_kwargs=None).model_init_kwargs == {}  # type: ignore[arg-type]


def test_generation_kwargs_win_over_the_settings_they_repeat() -> None:
    config = GRPOConfig(temperature=0.9, generation_kwargs={"temperature": 0.3, "top_k": 5})
    assert (config.temperature, config.top_k) == (0.3, 5)


def test_members_of_enums_are_their_text() -> None:
    class Strategy(Enum):
        STEPS = "steps"

    assert GRPOConfig(eval_strategy=Strategy.STEPS).eval_strategy == "steps"  # type: ignore[arg-type]


def test_the_run_folder_may_be_given_without_its_name() -> None:
    assert GRPOConfig("runs/one").output_dir == "runs/one"  # type: ignore[call-arg,misc]


def test_trackers_are_a_list_and_none_is_no_tracker() -> None:
    for given, expected in (
        (None, []),
        ("none", []),
        ("wandb", ["wandb"]),
        (["trackio", "wandb"], ["trackio", "wandb"]),
    ):
        assert GRPOConfig(report_to=given).report_to == expected  # type: ignore[arg-type]


def test_all_trackers_are_those_that_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"trackio", "tensorboard"}
    found = "corral.training.trainer_config.find_spec"
    monkeypatch.setattr(found, lambda name: name if name in there else None)
    assert GRPOConfig(report_to="all").report_to == ["trackio", "tensorboard"]  # type: ignore[arg-type]
    assert SFTConfig(report_to=["all"]).report_to == ["trackio", "tensorboard"]


@pytest.mark.report("P213")
def test_what_trackers_record_hides_the_token_and_has_what_was_accepted() -> None:
    config = GRPOConfig(hub_token="hf_secret", do_train=True)  # type: ignore[call-arg]
    assert "hf_secret" not in f"{config.to_dict()}{config.to_json_string()}{config!r}"
    assert config.to_dict()["do_train"] is True
    plain = config.to_sanitized_dict()
    assert "hf_secret" not in str(plain)
    assert plain["chat_template_kwargs"] == "{}"
    assert plain["num_generations"] == 8


def test_idle_settings_are_told_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        GRPOConfig(vllm_mode="server", dataloader_num_workers=4)  # type: ignore[call-arg]
    (record,) = caplog.records
    assert "vllm_mode='server'" in record.getMessage()
    assert "dataloader_num_workers=4" in record.getMessage()
