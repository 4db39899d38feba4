"""The recipes that ship with Corral. No torch: listing them must be quick."""

import tomllib
from importlib import resources
from pathlib import Path

from corral.errors import UsageError


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


def recipe_text(recipe: str) -> str:
    """The TOML of a packaged recipe's name or of a file's path.

    Raises:
        UsageError: Neither exists.
    """
    packaged = packaged_recipes()
    if recipe in packaged:
        return packaged[recipe]
    path = Path(recipe)
    if path.is_file():
        return path.read_text(encoding="utf-8")
    raise UsageError(
        f"recipe={recipe!r} is neither a packaged recipe ({', '.join(packaged)}) nor a file."
    )
