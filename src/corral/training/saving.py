"""Writing a trained model so that it loads, and speaks, as it was trained."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import Any, Protocol

from safetensors import SafetensorError
from torch import nn
from transformers import PreTrainedModel

from corral.errors import storage_boundary


class HasTemplate(Protocol):
    """Knows whether conversations were written by a template of ours."""

    @property
    def template(self) -> str | None:
        """Its source; None when it was the tokenizer's own."""
        ...


def save_pretrained(model: nn.Module, tokenizer: Any, chat: HasTemplate, path: Path) -> None:
    """Write weights, tokenizer and the chat template that training used into one folder.

    Raises:
        StorageError: The disk is full, or may not be written.
    """
    with writing_tensors(path):
        path.mkdir(parents=True, exist_ok=True)
        model.save_pretrained(path)  # type: ignore[operator]
        _save_tokenizer(tokenizer, chat, path)


def describe_checkpoint(model: nn.Module, tokenizer: Any, chat: HasTemplate, path: Path) -> None:
    """Write what makes a checkpoint a model that ``from_pretrained`` loads.

    Nothing where a checkpoint has a part of the weights only, as with an adapter.
    """
    is_whole = all(parameter.requires_grad for parameter in model.parameters())
    if is_whole and isinstance(model, PreTrainedModel):
        config = copy(model.config)
        config.architectures = [type(model).__name__]
        config.save_pretrained(path)
        if model.can_generate() and model.generation_config is not None:
            # It refuses settings that contradict each other; no reason to lose a checkpoint.
            with suppress(ValueError):
                model.generation_config.save_pretrained(path)
        _save_tokenizer(tokenizer, chat, path)


def _save_tokenizer(tokenizer: Any, chat: HasTemplate, path: Path) -> None:
    if chat.template is not None:
        # The user's tokenizer (or processor) stays as it is; the saved one has the template.
        tokenizer = copy(tokenizer)
        tokenizer.chat_template = chat.template
    tokenizer.save_pretrained(path)


@contextmanager
def writing_tensors(path: Path) -> Iterator[None]:
    """A ``storage_boundary`` for safetensors as well, whose errors are none of the system's."""
    with storage_boundary(path):
        try:
            yield
        except SafetensorError as error:
            raise OSError(str(error).rstrip(".")) from error
