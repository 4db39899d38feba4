"""A sequence classifier scores prompt and completion as its tokenizer writes them."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForSequenceClassification

from corral import GRPOConfig, UsageError
from corral.rollout import reward_functions
from corral.training.reward_models import ROWS_AT_ONCE, RewardModel, with_reward_models
from support.tiny_models import save_tiny_model, tiny_tokenizer

PROMPT = [{"role": "user", "content": "Say something kind."}]
ANSWERS = ["Thanks.", "No", "A much longer answer than the others, by far."]


def classifier(labels: int = 1) -> Any:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tiny_tokenizer()),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_labels=labels,
        initializer_range=0.3,
    )
    return LlamaForSequenceClassification(config)


def callables(given: Any, tokenizers: Any = None, **options: Any) -> list[Any]:
    made = with_reward_models(given, tokenizers, GRPOConfig(**options), torch.device("cpu"))
    assert made is not None
    return made


def expected(model: Any, tokenizer: Any, text: str) -> float:
    """The logit at the last token of one text alone, without padding."""
    ids = tokenizer(text, add_special_tokens=False, return_tensors="pt").input_ids
    with torch.no_grad():
        hidden = model.model(ids).last_hidden_state[0, -1]
        return model.score(hidden)[0].item()


@pytest.mark.contract(33)
def test_the_reward_is_the_logit_over_prompt_and_completion() -> None:
    model, tokenizer = classifier(), tiny_tokenizer()
    (reward,) = callables(model, tokenizer)
    answers = ANSWERS * ROWS_AT_ONCE
    completions = [[{"role": "assistant", "content": answer}] for answer in answers]
    rewards = reward(prompts=[PROMPT] * len(answers), completions=completions, trainer_state=None)
    for given, completion in zip(rewards, completions, strict=True):
        text = tokenizer.apply_chat_template([*PROMPT, *completion], tokenize=False)
        assert given == pytest.approx(expected(model, tokenizer, text), abs=1e-5)
    assert len(set(rewards[:3])) == 3


def test_text_is_joined_as_it_is() -> None:
    model, tokenizer = classifier(), tiny_tokenizer()
    (reward,) = callables([model], [tokenizer])
    assert reward(["Two and"], [" two"]) == pytest.approx(
        [expected(model, tokenizer, "Two and two")], abs=1e-5
    )


@pytest.mark.contract(33)
def test_a_model_is_found_by_name_and_the_list_given_stays_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "kindness"
    model = classifier()
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)

    def other(**kwargs: Any) -> list[float]:
        return []

    given = [str(folder), other]
    made = callables(given)
    assert given == [str(folder), other]
    assert isinstance(made[0], RewardModel)
    assert [one.name for one in reward_functions(made)] == ["kindness", "other"]
    assert made[0](["a"], ["b"]) == pytest.approx(
        [expected(model, tiny_tokenizer(), "ab")], abs=1e-5
    )


def test_a_model_that_gives_no_single_number_is_refused() -> None:
    with pytest.raises(UsageError, match="LlamaForSequenceClassification has 2 outputs"):
        callables(classifier(labels=2), tiny_tokenizer())
    with pytest.raises(UsageError, match="a module without a configuration"):
        callables(nn.Linear(2, 1))
    with pytest.raises(UsageError, match="pass reward_processing_classes"):
        callables(classifier())


def test_a_language_model_is_no_reward_model(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"no weights for score\.weight, .*its architecture is LlamaForCausalLM"
    ):
        callables(str(save_tiny_model(tmp_path)))
