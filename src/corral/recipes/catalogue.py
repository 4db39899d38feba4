"""The recipes that ship with Corral. No torch: listing them must be quick."""

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from corral.errors import UsageError, require


def packaged_recipes() -> dict[str, str]:
    """TOML text of the packaged recipes, by name."""
    folder = resources.files("corral.recipes") / "toml"
    return {
        entry.name.removesuffix(".toml"): entry.read_text(encoding="utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".toml")
    }


def recipe_summaries() -> dict[str, str]:
    """One sentence about each packaged recipe, by name."""
    return {name: tomllib.loads(text)["summary"] for name, text in packaged_recipes().items()}


def recipe_source(recipe: str) -> str | dict[str, Any]:
    """The TOML of a packaged recipe's name or of a file's path; of a YAML file its data.

    Raises:
        UsageError: Neither exists, or the YAML cannot be read.
    """
    packaged = packaged_recipes()
    if recipe in packaged:
        return packaged[recipe]
    path = Path(recipe)
    if path.is_file():
        return read_settings(path)
    raise UsageError(
        f"recipe={recipe!r} is neither a packaged recipe ({', '.join(packaged)}) nor a file."
    )


def read_settings(path: Path) -> str | dict[str, Any]:
    """The text of a TOML file, or the data of a YAML file.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read {path}: {error}.") from error
    if path.suffix not in (".yaml", ".yml"):
        return text
    yaml = require("yaml", extra="train")
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"{path} is not valid YAML: {reason}.") from error
    if not isinstance(data, dict):
        raise UsageError(f"{path} holds a {type(data).__name__}: give settings by name.")
    return data


def sft_recipe(
    model: str,
    dataset: str,
    *,
    split: str | None,
    eval_dataset: str | None,
    settings_file: Path | None,
) -> dict[str, Any]:
    """The recipe whose only stage is supervised fine-tuning of a model on a dataset.

    Args:
        settings_file: TOML or YAML with fields of ``SFTConfig``.
    """
    settings: str | dict[str, Any] = read_settings(settings_file) if settings_file else {}
    if isinstance(settings, str):
        try:
            settings = tomllib.loads(settings)
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"{settings_file} is not valid TOML: {error}.") from error
    data: dict[str, Any] = {"path": dataset} | ({"split": split} if split else {})
    section: dict[str, Any] = {"dataset": data, "train": settings}
    if eval_dataset is not None:
        section["eval_dataset"] = {"path": eval_dataset}
        section["train"] = {"eval_strategy": "epoch", **settings}
    name = f"{Path(model).name}-sft"
    return {"name": name, "model": {"kind": "path", "path": model}, "sft": section}
