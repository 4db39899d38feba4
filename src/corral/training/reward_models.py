"""Reward models: sequence classifiers with one output, as reward functions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from corral.errors import UsageError, WrongTypeError
from corral.training.grpo_config import GRPOConfig
from corral.training.models import from_pretrained

ROWS_AT_ONCE = 8
"""Conversations that one forward pass scores; bounds memory, changes no reward."""


class RewardModel:
    """Scores conversations: the first logit over prompt and completion.

    Conversations are written with the tokenizer's own chat template; where the data's prompts are
    text, prompt and completion are joined as they are.
    """

    def __init__(
        self, model: nn.Module, tokenizer: Any, template_kwargs: Mapping[str, Any], device: Any
    ) -> None:
        self.model = model.to(device).eval().requires_grad_(False)
        self._tokenizer = tokenizer
        self._template_kwargs = template_kwargs
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        # The model finds a row's last token by looking for padding.
        config: Any = model.config
        config.get_text_config().pad_token_id = tokenizer.pad_token_id
        config.pad_token_id = tokenizer.pad_token_id
        self.__name__ = str(config._name_or_path or type(model).__name__).split("/")[-1]

    @torch.no_grad()
    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **_: Any) -> list[float]:
        """One reward for each completion."""
        texts = [self._text(*pair) for pair in zip(prompts, completions, strict=True)]
        rewards: list[float] = []
        for start in range(0, len(texts), ROWS_AT_ONCE):
            inputs = self._tokenizer(
                texts[start : start + ROWS_AT_ONCE],
                padding=True,
                padding_side="right",
                add_special_tokens=False,
                return_tensors="pt",
            )
            logits = self.model(**inputs.to(next(self.model.parameters()).device)).logits
            rewards += logits[:, 0].float().tolist()
        return rewards

    def _text(self, prompt: Any, completion: Any) -> str:
        if isinstance(prompt, str):
            return prompt + completion
        return self._tokenizer.apply_chat_template(
            [*prompt, *completion], tokenize=False, **self._template_kwargs
        )


def with_reward_models(
    given: Any, processing_classes: Any, args: GRPOConfig, device: Any
) -> list[Any] | None:
    """``reward_funcs`` as a new list in which models and their names are callables.

    Args:
        given: What the trainer got: one or a list of functions, models and names.
        processing_classes: Tokenizers of the models: one, or a list with one entry for each reward
            function (None for those that are no models, or whose tokenizer is beside the model).

    Raises:
        UsageError: A name has no model, or the lists do not fit.
        WrongTypeError: A model has no configuration of transformers.
    """
    if given is None:
        return None
    listed = list(given) if isinstance(given, list | tuple) else [given]
    if processing_classes is None:
        processing_classes = [None] * len(listed)
    elif not isinstance(processing_classes, list | tuple):
        processing_classes = [processing_classes]
    if len(processing_classes) != len(listed):
        raise UsageError(
            f"reward_processing_classes has {len(processing_classes)} entries for {len(listed)} "
            "reward functions: give one for each, None where the function is no model."
        )
    return [
        _callable(one, tokenizer, args, device)
        for one, tokenizer in zip(listed, processing_classes, strict=True)
    ]


def _callable(one: Any, tokenizer: Any, args: GRPOConfig, device: Any) -> Any:
    if isinstance(one, str | Path):
        model = _classifier(one, args)
    elif isinstance(one, nn.Module):
        model = one
    else:
        return one
    config = getattr(model, "config", None)
    if config is None:
        raise WrongTypeError(
            f"reward_funcs has a {type(model).__name__}, a module without a configuration: give a "
            "model for sequence classification of transformers, or a function that calls yours."
        )
    if getattr(config, "num_labels", 1) != 1:
        raise UsageError(
            f"The reward model {type(model).__name__} has {config.num_labels} outputs: load it "
            "with num_labels=1, or give a function that makes one number of them."
        )
    if tokenizer is None:
        name = config._name_or_path
        if not name:
            raise UsageError(
                "A reward model is an object without a path, so its tokenizer can't be found: pass "
                "reward_processing_classes."
            )
        remote = {"trust_remote_code": args.trust_remote_code}
        tokenizer = from_pretrained(AutoTokenizer, name, remote, what="reward_funcs")
    return RewardModel(model, tokenizer, args.chat_template_kwargs, device)


def _classifier(name: str | Path, args: GRPOConfig) -> Any:
    """The classifier of a folder or a hub id.

    Raises:
        UsageError: There is none, or its weights are not all there.
    """
    kwargs = {"dtype": torch.float32, **args.loading_kwargs(), "num_labels": 1}
    model, found = from_pretrained(
        AutoModelForSequenceClassification,
        name,
        {**kwargs, "output_loading_info": True},
        what="reward_funcs",
    )
    missing = sorted(found["missing_keys"])
    if missing:
        architecture = ", ".join(model.config.architectures or ["unknown"])
        raise UsageError(
            f"reward_funcs={str(name)!r} has no weights for {', '.join(missing[:3])}, which would "
            f"be drawn at random: its architecture is {architecture}, not a reward model. Give a "
            "model trained for sequence classification, or a function that scores with this one."
        )
    return model
