"""Tasks from rows that are read as they come, such as those of a streamed dataset."""

from collections.abc import Iterator, Mapping
from itertools import count, islice
from typing import Any

from corral.errors import UsageError, WrongTypeError
from corral.records import Task
from corral.rollout.seeds import derive
from corral.training.row_checks import Kinds, RowCheck
from corral.training.tasks import task_from_row

Row = Mapping[str, Any]


def is_stream(dataset: object) -> bool:
    """Whether rows can only be read one after the other, and nobody knows how many there are."""
    return hasattr(dataset, "__iter__") and not hasattr(dataset, "__len__")


class TaskStream:
    """Tasks for every generation, from an iterable dataset of ``datasets``.

    Shuffled, rows come out of a buffer of the dataset's own (``shuffle(seed=...)``), in another
    order in each pass; a rest too small for a generation is dropped. That is the order of TRL 1.16.
    """

    generations_per_epoch = None
    """Nobody knows how many rows there are."""

    def __init__(
        self,
        dataset: Any,
        kinds: Kinds,
        *,
        per_generation: int,
        seed: int,
        is_shuffled: bool,
        order_seed: int | None = None,
    ) -> None:
        """
        Args:
            kinds: What the rows may choose from.

        Raises:
            UsageError: There are no rows, the first cannot be played, or they cannot be shuffled.
            WrongTypeError: They can be read only once.
        """
        self.known_rows = [_first_row(dataset)]
        """What is known of the rows before they are played: the first one."""
        self._check = RowCheck.of_stream(self.known_rows[0], kinds)
        self._check(self.known_rows[0], 0)
        if is_shuffled and not hasattr(dataset, "shuffle"):
            raise UsageError(
                f"shuffle_dataset=True with a {type(dataset).__name__}, which has no shuffle(seed="
                "...): give a datasets.IterableDataset, or set shuffle_dataset=False."
            )
        order_seed = seed if order_seed is None else order_seed
        self._rows = dataset.shuffle(seed=order_seed) if is_shuffled else dataset
        self._per_generation = per_generation
        self._seed = seed
        self._next = 0
        self._chunks = self._endless()

    def tasks(self, generation: int) -> list[Task]:
        """The tasks that generation number ``generation`` (from 0) plays.

        Rows before them are read and left out, as after a resume; for a generation before the last
        one the stream is read from its start again.
        """
        if generation < self._next:
            self._next, self._chunks = 0, self._endless()
        chunk = next(islice(self._chunks, generation - self._next, None))
        self._next = generation + 1
        return [
            task_from_row(
                row, index=index, seed=derive(self._seed, "generation", generation, place)
            )
            for place, (index, row) in enumerate(chunk)
        ]

    def _endless(self) -> Iterator[list[tuple[int, Row]]]:
        """The rows of each generation, with their places in a pass over the data."""
        for epoch in count():
            if hasattr(self._rows, "set_epoch"):
                self._rows.set_epoch(epoch)
            rows = enumerate(self._checked())
            length = 0
            while len(chunk := list(islice(rows, self._per_generation))) == self._per_generation:
                yield chunk
                length += len(chunk)
            if not length:
                raise UsageError(
                    f"train_dataset has {len(chunk)} rows, and a generation takes "
                    f"{self._per_generation}: give a list, whose rows are repeated, or set a "
                    "smaller generation_batch_size."
                )

    def _checked(self) -> Iterator[Row]:
        for index, row in enumerate(self._rows):
            self._check(row, index)
            yield row


def _first_row(dataset: Any) -> Any:
    if iter(dataset) is dataset:
        raise WrongTypeError(
            f"train_dataset is a {type(dataset).__name__}, which can be read only once: give a "
            "list, or datasets.IterableDataset.from_generator(...)."
        )
    for row in dataset:
        return row
    raise UsageError("train_dataset has no rows: give at least one task.")
