"""The folders of recipes' runs: which they are, who may write there, what lies in them."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from corral.config import load
from corral.errors import UsageError
from corral.recipes.recipe import Recipe
from corral.track import RunFolder, check_can_be_set_aside, set_aside, sole_writer
from corral.training.run_settings import check_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedAside:
    """What was in the way of a run's folder, and is kept under another name."""

    what: str
    """Such as "a finished run"."""
    path: Path
    """Where it was."""
    aside: Path
    """Where it is now."""
    can_go_on: bool
    """Whether it is a run that was not finished."""


def check_run_folder(path: Path) -> None:
    """Check that a run may leave its files at a path.

    Raises:
        UsageError: It is the present folder or a file, or may not be written.
    """
    check_can_be_set_aside(path)
    check_folder(path)


def fresh_folder(path: Path, tell: Callable[[MovedAside], None]) -> tuple[RunFolder, ExitStack]:
    """A new run folder, and what keeps others from writing there until it is closed.

    What is in the way is kept under another name, which ``tell`` is told.

    Raises:
        UsageError: Another process trains there, or the folder is the present one or no folder.
    """
    check_run_folder(path)
    folder, writing = RunFolder(path), ExitStack()
    if path.is_dir():
        writing.enter_context(sole_writer(path))
    is_run = folder.exists()
    is_finished = folder.report_path.is_file()  # the last thing that a run writes
    aside = set_aside(path)
    if aside is not None:
        run = "a finished run" if is_finished else "a run that was not finished"
        tell(
            MovedAside(
                what=run if is_run else "something else than a run",
                path=path,
                aside=aside,
                can_go_on=is_run and not is_finished,
            )
        )
    writing.enter_context(sole_writer(folder.create().path))
    return folder, writing


def left_folder(path: Path) -> tuple[RunFolder, ExitStack]:
    """The folder of a run to go on with, and what keeps others from writing there.

    Raises:
        UsageError: Another process trains there.
    """
    writing = ExitStack()
    writing.enter_context(sole_writer(path))
    return RunFolder(path), writing


def saved_config(recipe: Recipe) -> Path:
    """The settings that the recipe's run was started with.

    Raises:
        UsageError: There is no such run.
    """
    path = RunFolder(run_path(recipe)).config_path
    if not path.is_file():
        raise UsageError(f"There is no run to resume in {path.parent}: start it without --resume.")
    return path


def run_path(recipe: Recipe) -> Path:
    """The folder of a recipe's run."""
    return Path(recipe.output or f"runs/{recipe.name}")


def recipe_of(folder: Path) -> Recipe | None:
    """The recipe that the run in ``folder`` was started with; None if it is no run folder."""
    path = RunFolder(folder).config_path
    return load(path, [], Recipe).value if path.is_file() else None


def newest_model(folder: Path) -> Path | None:
    """The model of the latest finished stage of a run folder; None for any other folder."""
    candidates = [folder / "models" / stage for stage in ("grpo", "sft", "base")]
    return next((path for path in candidates if (path / "config.json").is_file()), None)
