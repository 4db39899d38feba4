"""What a recipe names outside itself: reward functions, rows of data, files."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corral.env.registry import resolve
from corral.errors import UsageError
from corral.worlds import World

if TYPE_CHECKING:
    from corral.recipes.recipe import DataSection, Recipe


Rows = Sequence[Mapping[str, Any]]
"""Rows of data."""

Worlds = Mapping[str | None, World]
"""By the name that rows have in their column ``environment``; None for the only one."""


def factory_of(worlds: Worlds) -> Any:
    """The worlds as a trainer takes them: nothing, a factory, or several by name."""
    factories = {name: world.factory for name, world in worlds.items()}
    return factories.get(None, factories or None)


def find_rewards(specs: Sequence[str]) -> list[Callable[..., Any]]:
    """The functions that ``path.py:function`` or ``module:function`` name."""
    return [_reward(spec) for spec in specs]


def _reward(spec: str) -> Callable[..., Any]:
    if ":" not in spec:
        raise UsageError(
            f"grpo.rewards: {spec!r} names no function. Write path.py:function or module:function."
        )
    try:
        return resolve(spec, what="function")
    except UsageError as error:
        raise UsageError(f"grpo.rewards: {error}") from error


def rows_at(section: "DataSection", name: str) -> Rows:
    """The rows of a recipe's data.

    Raises:
        UsageError: There are none.
    """
    from corral.training.data_files import RowStream, open_rows

    found = open_rows(section.path, name=name, split=section.split, config=section.config)
    rows = list(found) if isinstance(found, RowStream) else found
    if not rows:
        raise UsageError(f"{name}={section.path!r} has no rows: give at least one.")
    return rows


def with_absolute_paths(recipe: "Recipe") -> "Recipe":
    """The recipe with files and folders named from the root, so that it runs from anywhere."""
    changed = recipe.model_copy(deep=True)
    if isinstance(changed.environment, str):
        changed.environment = absolute_spec(changed.environment)
    elif changed.environment is not None:
        changed.environment = {
            name: absolute_spec(spec) for name, spec in changed.environment.items()
        }
    if changed.model.kind == "path":
        changed.model.path = _absolute(changed.model.path)
        if changed.model.chat_template is not None:
            changed.model.chat_template = _absolute(changed.model.chat_template)
    sections: list[Any] = [changed.sft, changed.grpo, changed.evaluation]
    for section in filter(None, sections):
        for name in ("dataset", "eval_dataset"):
            data = getattr(section, name, None)
            if data is not None:
                data.path = _absolute(data.path)
    if changed.grpo is not None:
        changed.grpo.rewards = [absolute_spec(spec) for spec in changed.grpo.rewards]
    return changed


def _absolute(path: str) -> str:
    found = Path(path).expanduser()
    return str(found.absolute()) if found.exists() else path


def absolute_spec(spec: str) -> str:
    """What names a class or function, with its file named from the root."""
    place, _, name = spec.rpartition(":")
    return f"{_absolute(place)}:{name}" if place.endswith(".py") else spec
