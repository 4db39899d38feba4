"""``--dataset``: rows that are played instead of those that a world or a run brings."""

from typing import TYPE_CHECKING, Annotated

import typer

from corral.errors import require

if TYPE_CHECKING:
    from corral.recipes.named import Rows, Worlds

NAME = "--dataset"
"""What the rows are called in errors."""

Dataset = Annotated[
    str | None,
    typer.Option(
        help="Rows to play: a .jsonl, .json, .parquet or .csv file, a folder, or a hub id."
    ),
]
Split = Annotated[str | None, typer.Option(help="Split of the dataset; default train.")]


def given_rows(dataset: str, split: str | None) -> "Rows":
    """The rows that are there.

    Raises:
        UsageError: There are none.
    """
    require("torch", extra="train")  # what reads rows is a part of training
    from corral.recipes.named import rows_at
    from corral.recipes.recipe import DataSection

    return rows_at(DataSection(path=dataset, split=split), NAME)


def check_given_rows(rows: "Rows", worlds: "Worlds") -> None:
    """Check that rows can be played, as those of a training are checked.

    Raises:
        UsageError: One cannot, which is named by its number.
    """
    from corral.recipes.checks import check_played

    check_played(rows, worlds, NAME)
