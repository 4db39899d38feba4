"""Arguments of the trainer that can't be used are told before a model is loaded."""

import os
from pathlib import Path
from typing import Any

import pytest

from corral import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer, UsageError
from corral.errors import WrongTypeError
from corral.training.arguments import quantized


class World:
    def reset(self, **kwargs: Any) -> None: ...

    def get_reward(self) -> float:
        return 0.0


def add(a: int, b: int) -> int:
    """Add.

    Args:
        a: One.
        b: Another.
    """
    return a + b


ROWS = [{"prompt": "Play."}]


@pytest.mark.contract(3)
@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (
            {"args": {"max_steps": 1}},
            TypeError,
            r"args is a dict: give corral.GRPOConfig\(\*\*args",
        ),
        ({"args": 3}, TypeError, "args is a int: give a corral.GRPOConfig"),
        ({"tools": add}, TypeError, r"tools is the one function 'add': give a list, tools=\[add\]"),
        ({"tools": "add"}, TypeError, "tools='add': give a list of functions"),
        (
            {"environment_factory": "worlds.py:World"},
            TypeError,
            r"is text: give the class itself, such as corral.env.resolve\('worlds.py:World'\)",
        ),
        ({"environment_factory": World()}, TypeError, "which cannot be called: give the class"),
        ({"train_dataset": {"prompt": ["Play."]}}, TypeError, r"is a dict .*Dataset.from_dict"),
        ({"train_dataset": 3}, TypeError, "train_dataset is a int"),
        (
            {"train_dataset": [{"prompt": [{"content": "Play."}]}]},
            ValueError,
            r"train_dataset\[0\]: prompt\[0\] is .* needs a `role`",
        ),
        (
            {"reward_funcs": [len, len], "reward_processing_classes": [None]},
            ValueError,
            "has 1 entries for 2 reward functions",
        ),
        (
            {"reward_funcs": "/nowhere/at/all"},
            ValueError,
            "reward_funcs='/nowhere/at/all' does not",
        ),
        ({"processing_class": 3}, TypeError, "processing_class is a int: give a tokenizer"),
    ],
)
def test_what_cannot_be_used_is_told(
    arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    usual = {"environment_factory": World, "train_dataset": ROWS}
    with pytest.raises(UsageError, match=text) as raised:
        GRPOTrainer("/no/model", **(usual | arguments))
    assert isinstance(raised.value, error)


def test_a_file_in_the_place_of_the_run_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(UsageError, match=r"file is a file\. Give a folder"):
            GRPOTrainer("/no/model", args=GRPOConfig(output_dir=str(folder)))


@pytest.mark.skipif(os.access("/proc/sys", os.W_OK), reason="needs a folder nobody may write")
@pytest.mark.parametrize("trainer", [GRPOTrainer, SFTTrainer])
def test_a_place_that_may_not_be_written_is_told(trainer: Any) -> None:
    config = GRPOConfig if trainer is GRPOTrainer else SFTConfig
    with pytest.raises(
        UsageError, match="output_dir='/proc/sys/run': /proc/sys may not be written"
    ):
        trainer("/no/model", args=config(output_dir="/proc/sys/run"))


def test_weights_of_rewards_are_finite() -> None:
    with pytest.raises(UsageError, match=r"reward_weights"):
        GRPOConfig(reward_weights=[float("nan")])
    with pytest.raises(UsageError, match=r"seed=.* should be less than 4294967296"):
        GRPOConfig(seed=2**70)


def test_a_quantisation_is_given_once_and_to_a_model_that_is_loaded() -> None:
    assert quantized({"a": 1}, None, "model") == {"a": 1}
    assert quantized({"a": 1}, "q", "model") == {"a": 1, "quantization_config": "q"}
    assert quantized({"a": 1}, "q", object()) == {"a": 1}
    with pytest.raises(UsageError, match="give it once"):
        quantized({"quantization_config": "q"}, "q", "model")


def test_a_wrong_type_is_a_wrong_use() -> None:
    assert issubclass(WrongTypeError, TypeError)
    assert issubclass(WrongTypeError, UsageError)
