"""Wrong uses of the constructor that need a model to be seen, and what it takes without a word."""

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from peft import LoraConfig, get_peft_model

from corral import GRPOConfig, GRPOTrainer
from corral.errors import UsageError
from support.tiny_models import tiny_model, tiny_tokenizer

REWRITES = (
    "{% for m in messages %}<{{ m.role }}>{% if loop.last or m.role != 'assistant' %}"
    "{{ m.content }}{% endif %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
"""Forgets what the model said as soon as something follows it."""


def score(completions: list[Any], **_: Any) -> list[float]:
    return [0.0] * len(completions)


def lora(target: str = "q_proj") -> LoraConfig:
    return LoraConfig(target_modules=[target])


def trainer(folder: Path, settings: dict[str, Any] | None = None, **given: Any) -> GRPOTrainer:
    tokenizer = given.pop("processing_class", tiny_tokenizer())
    usual: dict[str, Any] = {
        "model": tiny_model(tokenizer),
        "processing_class": tokenizer,
        "reward_funcs": score,
        "train_dataset": [{"prompt": [{"role": "user", "content": "Play."}]}],
    }
    small = {"max_steps": 1, "per_device_train_batch_size": 2, "num_generations": 2}
    args = GRPOConfig(output_dir=str(folder), **small | (settings or {}))
    return GRPOTrainer(**usual | given, args=args)


@pytest.mark.contract(3)
@pytest.mark.parametrize(
    ("given", "settings", "error", "text"),
    [
        ({"peft_config": {"r": 4}}, {}, TypeError, "peft_config is a dict"),
        (
            {"model": get_peft_model(tiny_model(tiny_tokenizer()), lora()), "peft_config": lora()},
            {},
            ValueError,
            "has an adapter already",
        ),
        ({}, {"reward_weights": [1.0, 2.0]}, ValueError, "2 values for 1 reward functions"),
        ({}, {"sync_ref_model": True, "beta": 0.0}, ValueError, "no reference model"),
        (
            {"peft_config": lora()},
            {"sync_ref_model": True, "beta": 0.1},
            NotImplementedError,
            "sync_ref_model=True with an adapter",
        ),
        ({}, {"router_aux_loss_coef": 0.1}, ValueError, "router_aux_loss_coef"),
        (
            {"train_dataset": Dataset.from_list([{"prompt": "A"}]).to_iterable_dataset()},
            {"accelerator_config": {"dispatch_batches": True}},
            ValueError,
            "dispatch_batches",
        ),
        (
            {"processing_class": tiny_tokenizer(chat_template=REWRITES)},
            {},
            ValueError,
            "template",
        ),
    ],
)
def test_a_wrong_use_has_its_type_of_error(
    tmp_path: Path,
    given: dict[str, Any],
    settings: dict[str, Any],
    error: type[Exception],
    text: str,
) -> None:
    with pytest.raises(UsageError, match=text) as refused:
        trainer(tmp_path, settings, **given)
    assert isinstance(refused.value, error)


@pytest.mark.contract(3)
@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`")
def test_an_adapter_of_the_output_head_learns(tmp_path: Path) -> None:
    """TRL refuses it; the logits of loss and engine are those of the adapted head here."""

    def last_id(completion_ids: list[list[int]], **_: Any) -> list[float]:
        return [float(ids[-1]) for ids in completion_ids]

    made = trainer(
        tmp_path,
        {
            "max_steps": 2,
            "per_device_train_batch_size": 4,
            "num_generations": 4,
            "learning_rate": 0.1,
            "max_completion_length": 8,
        },
        peft_config=lora("lm_head"),
        reward_funcs=last_id,
    )
    adapter = [weight for name, weight in made.model.named_parameters() if "lm_head.lora_B" in name]
    made.train()
    assert adapter
    assert all(weight.abs().max() > 0 for weight in adapter)
    steps = [line for line in made.state.log_history if "loss" in line]
    # The engine sampled the second step with the adapted head, and the learner agrees with it.
    assert steps[1]["sampling/importance_sampling_ratio/max"] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.contract(4)
@pytest.mark.parametrize("silence", ["", "1"])
def test_nothing_here_is_experimental(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder, silence: str
) -> None:
    """With and without TRL's variable: there is no warning it could silence."""
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", silence)
    trainer(tmp_path).end()
    assert not [str(one.message) for one in recwarn if "experimental" in str(one.message).lower()]
