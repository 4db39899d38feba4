"""Where a run's tasks come from, and in which order."""

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch

from corral.errors import UsageError, WrongTypeError
from corral.records import Message, Task
from corral.rollout.seeds import derive
from corral.training.image_columns import images_of, with_images
from corral.training.picture_table import PictureTable

logger = logging.getLogger(__name__)

_LIKELY_PROMPTS = ("question", "problem", "instruction", "query", "prompts", "messages", "input")
"""Columns that hold prompts in data made for other purposes."""


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


def messages_of(prompt: object) -> list[Message]:
    """A conversation from what a data row has under ``prompt``: messages, text or nothing."""
    if prompt is None:
        return [{"role": "user", "content": ""}]
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    if isinstance(prompt, Sequence) and all(isinstance(message, Mapping) for message in prompt):
        for place, message in enumerate(prompt):
            _check_message(message, place)  # type: ignore[arg-type]
        return [dict(message) for message in prompt]  # type: ignore[misc]
    raise UsageError(
        f"prompt={prompt!r:.80}: give text, or a list of messages such as "
        '[{"role": "user", "content": "Play."}].'
    )


def _check_message(message: Mapping[str, Any], place: int) -> None:
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str):
        raise UsageError(
            f"prompt[{place}] is {dict(message)!r:.80}: a message needs a `role`, such as "
            '{"role": "user", "content": "Play."}.'
        )
    if content is not None and not isinstance(content, str | list):
        raise UsageError(
            f"prompt[{place}] has content={content!r:.80}: give text, or a list of content blocks."
        )


def rows_of(dataset: object, *, name: str = "train_dataset") -> Sequence[Any]:
    """The rows of a list or of a map-style dataset, as they are; of a table with pictures, as they
    are read.

    Raises:
        WrongTypeError: The data is neither.
    """
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


def check_rows(
    rows: Sequence[Any], environments: Collection[str | None], *, name: str = "train_dataset"
) -> None:
    """Check before anything is played that each row says what to play; see :func:`check_row`."""
    rows = rows.without_columns() if isinstance(rows, PictureTable) else rows
    for index, row in enumerate(rows):
        check_row(row, index, environments, name=name)
    likely = next((column for column in _LIKELY_PROMPTS if rows and column in rows[0]), None)
    if environments and likely and all(row.get("prompt") is None for row in rows):
        logger.warning(
            "No row of %s has a `prompt`, so conversations begin with what reset() returns; `%s` "
            "goes to reset() as an argument. Rename the column if it is the prompt.",
            *(name, likely),
        )


def check_row(
    row: Any, index: int, environments: Collection[str | None], *, name: str = "train_dataset"
) -> None:
    """Check that a row says what to play.

    Args:
        environments: The names that the data chooses from; only None for one that plays every row,
            empty where there is none.
        name: What the data set is called in errors.

    Raises:
        UsageError: It is no mapping, or has a prompt that is no conversation, or none where no
            environment could bring one, or names an environment that is not there.
    """
    place = f"{name}[{index}]"
    if not isinstance(row, Mapping):
        raise UsageError(f"{place} is {row!r:.60}: each row must be a mapping of columns.")
    try:
        messages_of(row.get("prompt"))
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None
    if not environments and row.get("prompt") is None:
        raise UsageError(
            f"{place} has no `prompt` (its columns: {', '.join(map(str, row)) or 'none'}), and "
            "there is no environment that could bring one. Add the column."
        )
    is_choice = bool(environments) and None not in environments
    if is_choice and row.get("environment") not in environments:
        raise UsageError(
            f"{place} has environment={row.get('environment')!r}, which is not among the "
            f"environments: {', '.join(sorted(map(repr, environments)))}."
        )
