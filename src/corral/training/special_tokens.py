"""A tokenizer or processor with the eos token and chat template that a configuration asks for."""

from copy import deepcopy
from pathlib import Path
from typing import Any

from corral.chat.image_support import is_processor
from corral.errors import UsageError
from corral.training.models import load_tokenizer, stop_ids_of
from corral.training.sft_config import SFTConfig


def prepared(processing_class: Any, args: SFTConfig) -> Any:
    """The tokenizer or processor itself, or a changed copy: what was given stays as it is."""
    if args.eos_token is None and args.chat_template_path is None:
        return processing_class
    changed = deepcopy(processing_class)
    tokenizer = tokenizer_of(changed)
    if args.eos_token is not None:
        if args.eos_token not in tokenizer.get_vocab():
            raise UsageError(
                f"eos_token={args.eos_token!r} is no token of the tokenizer's vocabulary."
            )
        tokenizer.eos_token = args.eos_token
    if args.chat_template_path is not None:
        changed.chat_template = chat_template_at(args.chat_template_path, tokenizer)
    return changed


def tokenizer_of(processing_class: Any) -> Any:
    """A processor's tokenizer, or the tokenizer itself."""
    return processing_class.tokenizer if is_processor(processing_class) else processing_class


def stop_at_eos(model: Any, tokenizer: Any) -> None:
    """Let the model's own configurations know the token that now ends a turn."""
    token = tokenizer.eos_token_id
    model.config.get_text_config().eos_token_id = token
    known = sorted(stop_ids_of(model) - {token})
    model.generation_config.eos_token_id = [token, *known]


def chat_template_at(place: str, tokenizer: Any, *, name: str = "chat_template_path") -> str:
    """The chat template in a Jinja file, or of the tokenizer in a model folder or under a hub id.

    Args:
        tokenizer: What is to use it: it must know the special tokens of the other one.
        name: The setting that named the place, for errors.

    Raises:
        UsageError: There is none, or it has special tokens that are unknown here.
    """
    path = Path(place).expanduser()
    if path.is_file():
        return path.read_text(encoding="utf-8")
    if path.suffix in (".jinja", ".j2"):
        raise UsageError(f"{name}={place!r} does not exist (looked for {path.absolute()}).")
    other = load_tokenizer(place, None)
    if not other.chat_template:
        raise UsageError(f"{name}={place!r}: its tokenizer has no chat template.")
    unknown = sorted(set(other.all_special_tokens) - set(tokenizer.get_vocab()))
    if unknown:
        raise UsageError(
            f"{name}={place!r}: its special tokens {', '.join(unknown)} are not in the "
            "model's vocabulary. Add them to the tokenizer, resize the model's embeddings, and "
            "pass both."
        )
    return other.chat_template
