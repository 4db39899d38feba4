"""Rewards that a model gives."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForSequenceClassification

from corral import GRPOConfig, GRPOTrainer, UsageError
from support.tiny_models import tiny_model, tiny_tokenizer


@pytest.fixture
def judge(tmp_path: Path) -> Path:
    """A random classifier with its tokenizer in a folder."""
    tokenizer = tiny_tokenizer()
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        num_labels=1,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.5,
    )
    torch.manual_seed(1)
    Qwen3ForSequenceClassification(config).save_pretrained(tmp_path / "judge")
    tokenizer.save_pretrained(tmp_path / "judge")
    return tmp_path / "judge"


def trainer(tmp_path: Path, reward: Any, **given: Any) -> GRPOTrainer:
    tokenizer = tiny_tokenizer()
    options: dict[str, Any] = {
        "max_steps": 1,
        "per_device_train_batch_size": 4,
        "num_generations": 4,
        "max_completion_length": 8,
    }
    return GRPOTrainer(
        model=tiny_model(tokenizer),
        processing_class=tokenizer,
        reward_funcs=reward,
        args=GRPOConfig(output_dir=str(tmp_path / "run"), **options),
        train_dataset=[{"prompt": [{"role": "user", "content": "Say something nice."}]}],
        **given,
    )


@pytest.mark.contract(33)
def test_a_model_scores_each_conversation_by_itself(tmp_path: Path, judge: Path) -> None:
    made = trainer(tmp_path, [str(judge), lambda completions, **_: [0.0] * len(completions)])
    made.train()
    tokenizer = tiny_tokenizer()
    model = Qwen3ForSequenceClassification.from_pretrained(judge, dtype=torch.float32).eval()
    (file,) = made.run_folder.episode_files("grpo")
    episodes = [saved.episode for saved in file.read()]
    assert len({episode.rewards["judge"] for episode in episodes}) > 1
    for episode in episodes:
        text = tokenizer.apply_chat_template(list(episode.messages), tokenize=False)
        ids = tokenizer(text, return_tensors="pt", add_special_tokens=False)
        with torch.no_grad():
            alone = model(**ids).logits[0, 0].item()
        assert episode.rewards["judge"] == pytest.approx(alone, abs=1e-4)


@pytest.mark.contract(33)
def test_a_loaded_model_takes_the_tokenizer_given(tmp_path: Path, judge: Path) -> None:
    model = Qwen3ForSequenceClassification.from_pretrained(judge)
    made = trainer(tmp_path, model, reward_processing_classes=tiny_tokenizer())
    assert made.reward_func_names == ["judge"]
    assert made.reward_funcs == [model]
    scored = made._rewards[0].function
    texts = [["a", "bcd"], ["b", "cda"]]
    short, long = scored(prompts=texts[0], completions=texts[1])
    assert short == pytest.approx(scored(prompts=["a"], completions=["b"])[0], abs=1e-4)
    assert long == pytest.approx(scored(prompts=["bc"], completions=["dcda"])[0], abs=1e-4)


def test_what_is_no_reward_model_is_told(tmp_path: Path, judge: Path) -> None:
    with pytest.raises(UsageError, match="reward_funcs='no/judge' is neither a folder"):
        trainer(tmp_path, "no/judge")
    with pytest.raises(UsageError, match="reward_processing_classes has 1 entries for 2"):
        trainer(tmp_path, [str(judge), len], reward_processing_classes=[None])
