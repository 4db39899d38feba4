"""Reward functions that are models: sequence classifiers with one score a conversation."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from corral.errors import UsageError

ROWS_AT_ONCE = 16
"""Conversations scored in one pass."""


class RewardModel:
    """Scores prompt and completion together: the first logit of the last token."""

    def __init__(
        self, model: Any, tokenizer: Any, device: torch.device, template_kwargs: Mapping[str, Any]
    ) -> None:
        self.__name__ = Path(getattr(model.config, "_name_or_path", "")).name or "reward_model"
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        model.config.get_text_config().pad_token_id = tokenizer.pad_token_id
        self.model = model.to(device).eval()
        self.tokenizer = tokenizer
        self._template_kwargs = dict(template_kwargs)

    @torch.inference_mode()
    def __call__(self, *, prompts: list[Any], completions: list[Any], **_: Any) -> list[float]:
        """One score for each conversation; text that was only continued is scored as text."""
        pairs = zip(prompts, completions, strict=True)
        texts = [self._text(prompt, completion) for prompt, completion in pairs]
        scores: list[float] = []
        for start in range(0, len(texts), ROWS_AT_ONCE):
            batch = self.tokenizer(
                text=texts[start : start + ROWS_AT_ONCE],
                return_tensors="pt",
                padding=True,
                padding_side="right",
                add_special_tokens=False,
            )
            logits = self.model(**batch.to(self.model.device)).logits
            scores += logits[:, 0].float().tolist()
        return scores

    def _text(self, prompt: Any, completion: Any) -> str:
        if isinstance(prompt, str):
            return prompt + completion
        return self.tokenizer.apply_chat_template(
            [*prompt, *completion], tokenize=False, **self._template_kwargs
        )


def with_reward_models(
    functions: Callable[..., Any] | str | Path | Sequence[Any] | None,
    tokenizers: Any,
    *,
    device: torch.device,
    template_kwargs: Mapping[str, Any],
) -> list[Callable[..., Any]]:
    """What was given as ``reward_funcs``, its models (or names of models) made callable.

    Args:
        tokenizers: One for each function, None for those that are no models; None: the one beside
            each model.

    Raises:
        UsageError: There is not one tokenizer for each function.
    """
    is_one = callable(functions) or isinstance(functions, str | Path)
    given: list[Any] = [functions] if is_one else list(functions or ())  # type: ignore[arg-type]
    beside = tokenizers if isinstance(tokenizers, list | tuple) else [tokenizers] * len(given)
    if len(beside) != len(given):
        raise UsageError(
            f"reward_processing_classes has {len(beside)} entries for {len(given)} reward "
            "functions: give one for each, None for those that are no models."
        )
    return [
        _made(one, own, device, template_kwargs) for one, own in zip(given, beside, strict=True)
    ]


def _made(one: Any, tokenizer: Any, device: torch.device, kwargs: Mapping[str, Any]) -> Any:
    if isinstance(one, str | Path):
        try:
            one = AutoModelForSequenceClassification.from_pretrained(str(one), num_labels=1)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"The reward model {str(one)!r} cannot be loaded: {error}. Give a folder or hub id "
                "of a sequence classifier, or a function."
            ) from error
    if not isinstance(one, nn.Module):
        return one
    name = getattr(one.config, "_name_or_path", "")
    if tokenizer is None and not name:
        raise UsageError(
            "A reward model that was not loaded from a folder or hub needs its tokenizer: pass "
            "reward_processing_classes=[tokenizer]."
        )
    return RewardModel(one, tokenizer or AutoTokenizer.from_pretrained(name), device, kwargs)
