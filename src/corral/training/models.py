"""Models and tokenizers: given as objects, as a folder, or as a hub id."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoTokenizer

from corral.chat import ChatFormat
from corral.chat.image_support import (
    corral_renderer,
    is_processor,
    plain_renderer,
    text_part,
    tokenizer_and_images,
)
from corral.chat.render import Renderer
from corral.chat.tool_support import tokenizer_renderer
from corral.errors import TemplateError, UsageError, WrongTypeError, require
from corral.rollout.seeds import derive
from corral.training.hub_models import check_hub_has, is_path
from corral.training.vision import load_processor, reads_images


def load_model(model: str | Path | nn.Module, init_kwargs: Mapping[str, Any]) -> nn.Module:
    """The language model, or the one for images and text, that ``model`` names; or ``model``.

    Weights load in float32 unless ``init_kwargs`` give a dtype: an update of 1e-6 relative size
    vanishes in bfloat16 weights.

    Raises:
        UsageError: There is no model at that path and no hub answers to that id.
    """
    if isinstance(model, nn.Module):
        # A script may allow remote code although the model is there already.
        if set(init_kwargs) - {"trust_remote_code"}:
            raise UsageError(
                f"model_init_kwargs={dict(init_kwargs)!r} with a model that is already loaded: "
                "pass them to from_pretrained yourself, or give the model's path."
            )
        return model
    kwargs = {"dtype": torch.float32, **init_kwargs}
    if isinstance(kwargs["dtype"], str):
        kwargs["dtype"] = _dtype(kwargs["dtype"])
    check_hub_has(model, "model", **kwargs)
    kind = AutoModelForImageTextToText if reads_images(model) else AutoModelForCausalLM
    return from_pretrained(kind, model, kwargs)


def load_tokenizer(
    model: str | Path | nn.Module, tokenizer: Any | None, *, trust_remote_code: bool = False
) -> Any:
    """``tokenizer`` itself, or the one beside the model; a missing pad token becomes eos.

    Of a multimodal processor it is the tokenizer, with the processor's chat template.
    """
    if tokenizer is not None and is_processor(tokenizer):
        tokenizer = text_part(tokenizer)
    if tokenizer is None:
        name = model if isinstance(model, str | Path) else getattr(model, "name_or_path", "")
        if not name:
            raise UsageError(
                "The model is an object without a path, so its tokenizer can't be found: pass "
                "processing_class=tokenizer."
            )
        tokenizer = from_pretrained(AutoTokenizer, name, {"trust_remote_code": trust_remote_code})
    if not callable(getattr(tokenizer, "apply_chat_template", None)):
        raise WrongTypeError(
            f"processing_class is a {type(tokenizer).__name__}: give a tokenizer or a processor of "
            "transformers."
        )
    found: Any = tokenizer
    if found.pad_token is None:
        found.pad_token = found.eos_token
    return found


def load_processing_class(
    model: str | Path | nn.Module, given: Any | None, *, trust_remote_code: bool = False
) -> Any:
    """``given``, or what lies beside the model: its processor if it reads images, else tokenizer.

    Raises:
        UsageError: There is nothing, or it cannot be loaded.
    """
    name = model if isinstance(model, str | Path) else getattr(model, "name_or_path", "")
    if given is None and name:
        check_hub_has(name, "model")
        given = load_processor(name) if reads_images(model) else None
    tokenizer = load_tokenizer(model, given, trust_remote_code=trust_remote_code)
    return given if is_processor(given) else tokenizer


def with_adapter(model: nn.Module, peft_config: Any | None, seed: int) -> nn.Module:
    """The model with a fresh adapter of that configuration, or the model itself for None."""
    if peft_config is None:
        return model
    peft = require("peft", extra="train")
    if not isinstance(peft_config, peft.PeftConfig):
        raise WrongTypeError(
            f"peft_config is a {type(peft_config).__name__}: give a peft.LoraConfig or another "
            "PeftConfig."
        )
    if isinstance(model, peft.PeftModel):
        raise UsageError("The model has an adapter already: leave peft_config out.")
    with torch.random.fork_rng():
        torch.manual_seed(derive(seed, "adapter"))
        return peft.get_peft_model(model, peft_config)


def stop_ids_of(model: nn.Module) -> frozenset[int]:
    """All end-of-sequence ids of the model's generation config."""
    return stop_ids_in(getattr(model, "generation_config", None))


def stop_ids_in(generation_config: Any | None) -> frozenset[int]:
    """All end-of-sequence ids of a generation config; none without one."""
    ids = getattr(generation_config, "eos_token_id", None)
    if ids is None:
        return frozenset()
    return frozenset(ids) if isinstance(ids, list | tuple) else frozenset({ids})


def chat_format(
    tokenizer: Any,
    model: nn.Module,
    tools: Sequence[dict[str, Any]],
    template_kwargs: Mapping[str, Any],
    *,
    needs_tools: bool | None = None,
) -> ChatFormat:
    """How conversations with these tools are written for the model; proved if there are any.

    Args:
        needs_tools: Whether conversations have calls; None: if there are tools.
    """
    return ChatFormat.for_tokenizer(
        tokenizer,
        template_kwargs=template_kwargs,
        tools=tools,
        extra_stop_ids=sorted(stop_ids_of(model)),
        needs_tools=bool(tools) if needs_tools is None else needs_tools,
    )


def whole_renderer(
    processing_class: Any,
    model: nn.Module,
    template_kwargs: Mapping[str, Any],
    *,
    needs_tools: bool,
) -> Renderer:
    """What writes whole conversations, whether or not they can be extended turn by turn.

    It is the tokenizer's own template, or Corral's where that has no place for the tools.

    Args:
        processing_class: The tokenizer, or the processor of a model that reads images.
    """
    tokenizer, images = tokenizer_and_images(processing_class)
    own = plain_renderer(tokenizer, template_kwargs, images)
    if not needs_tools and tokenizer.chat_template:
        return own
    ends = sorted(stop_ids_of(model))
    try:
        found = tokenizer_renderer(tokenizer, template_kwargs, ends, images=images)
    except TemplateError:  # calls that Corral cannot read back, but the template can write
        return own
    return corral_renderer(tokenizer, template_kwargs, images) if found is None else found[0]


_DROPOUT_NUMBERS = ("attention_dropout", "activation_dropout", "hidden_dropout", "dropout")
"""What layers of transformers call the probability that they hand to a function."""


def disable_dropout(model: nn.Module) -> None:
    """Set the probability of every dropout to 0: of modules, and of layers that keep a number."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name in _DROPOUT_NUMBERS:
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def train_last_blocks(model: nn.Module, count: int) -> None:
    """Freeze all but the last ``count`` transformer blocks; what is frozen already stays frozen.

    Embeddings, head and final norm are frozen too. The backward pass then ends where the trained
    blocks begin, which is most of what it costs.

    Raises:
        UsageError: The model has fewer blocks.
    """
    blocks = _transformer_blocks(model)
    check_trained_blocks(count, len(blocks), type(model).__name__)
    trained = {id(parameter) for block in blocks[-count:] for parameter in block.parameters()}
    for parameter in model.parameters():
        if id(parameter) not in trained:
            parameter.requires_grad_(False)


def check_trained_blocks(count: int, there: int, model: str) -> None:
    """Check that a model has so many transformer blocks.

    Raises:
        UsageError: It has fewer.
    """
    if count > there:
        raise UsageError(f"trained_blocks={count}: {model} has {there} transformer blocks.")


def _transformer_blocks(model: nn.Module) -> list[nn.Module]:
    """The longest list of modules in the language model: every family keeps its blocks in one."""
    decoder: Any = getattr(model, "get_decoder", lambda: None)()  # a vision tower may be deeper
    model = decoder if isinstance(decoder, nn.Module) else model
    lists = [list(module) for module in model.modules() if isinstance(module, nn.ModuleList)]
    return max(lists, key=len, default=[])


def from_pretrained(
    auto_class: Any, name: str | Path, kwargs: Mapping[str, Any], *, what: str = "model"
) -> Any:
    """What a class of transformers loads from a folder or the hub.

    Args:
        what: The argument that named it, for errors.

    Raises:
        UsageError: There is no model at that path and no hub answers to that id.
    """
    path = Path(name)
    if path.is_dir() and not (path / "config.json").is_file():
        within = sorted(each.parent for each in path.glob("*/*/config.json"))
        remedy = f"such as {within[-1]}" if within else "that save_pretrained wrote"
        raise UsageError(
            f"{what}={str(name)!r} is a folder without config.json, so not a model. Give a folder "
            f"{remedy}."
        )
    if not path.is_dir() and is_path(str(name)):
        problem = "is a file" if path.is_file() else "does not exist"
        raise UsageError(
            f"{what}={str(name)!r} {problem}. Give a folder that save_pretrained wrote, or a "
            "hub id."
        )
    check_hub_has(name, what, **kwargs)
    try:
        return auto_class.from_pretrained(str(name), **kwargs)
    except (OSError, ValueError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UsageError(
            f"{what}={str(name)!r} is neither a folder with a model nor a hub id that can be "
            f"loaded ({reason})"
        ) from error


def _dtype(name: str) -> torch.dtype:
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise UsageError(f"dtype={name!r} is no type of torch: give 'float32' or 'bfloat16'.")
    return found
