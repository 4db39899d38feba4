"""Where a run's tasks come from, and in which order."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from corral.chat.messages import messages_of
from corral.errors import UsageError, WrongTypeError
from corral.records import Task
from corral.rollout.seeds import derive
from corral.training.image_columns import images_of, with_images
from corral.training.picture_table import PictureTable


class TaskSource:
    """Tasks for every generation, a pure function of (rows, seed, generation).

    The data is permuted anew each epoch by one generator seeded with ``seed`` and cut into chunks
    of distinct tasks; an incomplete last chunk is dropped. Data smaller than a chunk is repeated
    first, so that five rows can feed a generation of eight.
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        *,
        per_generation: int,
        seed: int,
        is_shuffled: bool,
        order_seed: int | None = None,
    ) -> None:
        if not rows:
            raise UsageError("train_dataset has no rows: give at least one task.")
        repeats = -(-per_generation // len(rows)) if len(rows) < per_generation else 1
        self.known_rows = rows
        """The rows, each once."""
        self._count = len(rows) * repeats
        self._per_generation = per_generation
        self._seed = seed
        self._is_shuffled = is_shuffled
        self._orders: list[list[int]] = []
        self._generator = torch.Generator().manual_seed(seed if order_seed is None else order_seed)

    @property
    def generations_per_epoch(self) -> int:
        """Whole chunks in one pass over the data."""
        return self._count // self._per_generation

    def tasks(self, generation: int) -> list[Task]:
        """The tasks that generation number ``generation`` (from 0) plays."""
        epoch, chunk = divmod(generation, self.generations_per_epoch)
        start = chunk * self._per_generation
        picked = self._order(epoch)[start : start + self._per_generation]
        return [
            task_from_row(
                self.known_rows[position % len(self.known_rows)],
                index=position % len(self.known_rows),
                seed=derive(self._seed, "generation", generation, place),
            )
            for place, position in enumerate(picked)
        ]

    def _order(self, epoch: int) -> list[int]:
        if not self._is_shuffled:
            return list(range(self._count))
        while len(self._orders) <= epoch:
            permutation = torch.randperm(self._count, generator=self._generator)
            self._orders.append(permutation.tolist())
        return self._orders[epoch]


def task_from_row(row: Mapping[str, Any], *, index: int, seed: int) -> Task:
    """The task a data row stands for; a prompt given as text is one user message.

    Pictures in the columns ``image`` and ``images`` become part of the prompt.
    """
    environment = row.get("environment")
    return Task(
        index=index,
        prompt=tuple(with_images(messages_of(row.get("prompt")), images_of(row))),
        columns=row,
        environment=environment if isinstance(environment, str) else None,
        seed=seed,
    )


def rows_of(dataset: object, *, name: str = "train_dataset") -> Sequence[Any]:
    """The rows of a list or of a map-style dataset, as they are; of a table with pictures, as they
    are read.

    Raises:
        WrongTypeError: The data is neither.
    """
    if isinstance(dataset, str | Path):
        raise WrongTypeError(
            f"{name}={str(dataset)!r} is a name, not rows: give a list of dicts, or what "
            f"{_loading(str(dataset))} returns."
        )
    if isinstance(dataset, Mapping):
        raise WrongTypeError(
            f"{name} is a dict with the keys {', '.join(map(repr, list(dataset)[:5]))}: give a "
            "list of rows, or make a dataset of columns with datasets.Dataset.from_dict(...)."
        )
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        raise WrongTypeError(
            f"{name} is a {type(dataset).__name__}: give a list of dicts or a map-style "
            "dataset (something with len() and integer indexing)."
        )
    table = PictureTable.of(dataset)
    if table is not None:
        return table
    return [dataset[index] for index in range(len(dataset))]  # type: ignore[arg-type,index]


def _loading(name: str) -> str:
    """The call of ``datasets`` that reads what is named."""
    kind = {".jsonl": "json", ".json": "json", ".parquet": "parquet", ".csv": "csv"}
    suffix = Path(name).suffix
    if suffix in kind:
        return f'datasets.load_dataset("{kind[suffix]}", data_files={name!r}, split="train")'
    return f'datasets.load_dataset({name!r}, split="train")'
