"""Writing a trained model so that it loads, and speaks, as it was trained."""

from copy import copy
from pathlib import Path
from typing import Any, Protocol

from torch import nn


class HasTemplate(Protocol):
    """Knows whether conversations were written by a template of ours."""

    @property
    def template(self) -> str | None:
        """Its source; None when it was the tokenizer's own."""
        ...


def save_pretrained(model: nn.Module, tokenizer: Any, chat: HasTemplate, path: Path) -> None:
    """Write weights, tokenizer and the chat template that training used into one folder."""
    path.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(path)  # type: ignore[operator]
    if chat.template is not None:
        # The user's tokenizer (or processor) stays as it is; the saved one carries the template.
        tokenizer = copy(tokenizer)
        tokenizer.chat_template = chat.template
    tokenizer.save_pretrained(path)
